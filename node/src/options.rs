//! The options of `open`.
//!
//! Owns: their values from JavaScript, with names in camelCase and times in milliseconds. Leaves out: the names and what they mean
//! (`flatwater-bridge`), and which of them are JavaScript's own.

use std::time::Duration;

use flatwater::options::Key;
use flatwater::{ErrorCode, Migrations, Options};
use flatwater_bridge::{DURATIONS, Given, OPTIONS, TUNING, camel, nearest, set, unknown};
use flatwater_remote::Remote;

use crate::capi::value::{Env, Kind, Value};
use crate::failure::{Failure, half_in};

/// Options that JavaScript has, or that have a form of their own here.
const OWN: [&str; 9] =
    ["functions", "functionsOnLoop", "integers", "key", "loadExtension", "migrations", "rows", "tuning", "types"];

/// Sets the options of an object.
pub(crate) fn of<'e>(env: Env<'e>, path: &str, given: Value<'e>) -> Result<Options, Failure> {
    let mut options = Options::new(path);
    for (name, value) in pairs(env, given)? {
        match name.as_str() {
            "functions" | "functionsOnLoop" | "integers" => {}
            "key" => options = options.key(key(env, value)?),
            "loadExtension" => options = with_extensions(env, options, value)?,
            "migrations" => options = options.migrations(migrations(env, value)?),
            "tuning" => {
                for (name, value) in pairs(env, value)? {
                    options = set_to(env, options, &name, value, Tier::Tuning)?;
                }
            }
            name => options = set_to(env, options, name, value, Tier::Option)?,
        }
    }
    Ok(options)
}

/// Returns the connection to a server, with the options that it may have. The others are those of files, or are in its address.
pub(crate) fn of_server<'e>(env: Env<'e>, address: &str, given: Value<'e>) -> Result<Remote, Failure> {
    let mut remote = Remote::connect(address)?;
    for (name, value) in pairs(env, given)? {
        match name.as_str() {
            "integers" => {}
            "timeout" => match form(env, &name, value, true)? {
                Given::Real(seconds) if let Ok(time) = Duration::try_from_secs_f64(seconds) => {
                    remote = remote.with_timeout(time);
                }
                _ => {
                    return Err(wrong("the option \"timeout\" must be a number of milliseconds", None));
                }
            },
            name if !Tier::Option.names().iter().any(|known| known == name) => {
                return Err(wrong(no_option(name, Tier::Option), None));
            }
            name => {
                return Err(wrong(
                    format!("the option {name:?} needs a database of this process, and this one is on a server"),
                    Some("a server has `timeout`, and what is in its address"),
                ));
            }
        }
    }
    Ok(remote)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    Option,
    Tuning,
}

impl Tier {
    fn names(self) -> Vec<String> {
        let (table, own) = match self {
            Self::Option => (OPTIONS, &OWN[..]),
            Self::Tuning => (TUNING, &[][..]),
        };
        table.iter().map(|(name, _)| camel(name)).chain(own.iter().map(|name| (*name).to_owned())).collect()
    }
}

fn set_to<'e>(env: Env<'e>, options: Options, name: &str, value: Value<'e>, tier: Tier) -> Result<Options, Failure> {
    if !tier.names().iter().any(|known| known == name) {
        return Err(wrong(no_option(name, tier), None));
    }
    let snake = snake(name);
    let given = form(env, name, value, DURATIONS.contains(&&*snake))?;
    set(options, &snake, given).map_err(|refused| {
        let refused = refused.replace(&format!("{snake:?}"), &format!("{name:?}"));
        wrong(refused.replace("a number of seconds", "a number of milliseconds"), None)
    })
}

/// Says what to write instead of an option that there is not.
#[cold]
fn no_option(name: &str, tier: Tier) -> String {
    let [options, tuning] = [Tier::Option.names(), Tier::Tuning.names()];
    let has = |names: &[String], name: &str| names.iter().any(|known| known == name);
    let near = |names: &[String]| nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
    let all = |names: &[String], what| unknown(what, name, names.iter().map(String::as_str).collect::<Vec<_>>());
    match tier {
        Tier::Option if has(&tuning, name) => {
            format!("the option {name:?} belongs into `tuning`: {{ tuning: {{ {name}: ... }} }}")
        }
        Tier::Option => match (near(&options), near(&tuning)) {
            (None, Some(key)) => format!("there is no option {name:?}; did you mean {{ tuning: {{ {key}: ... }} }}?"),
            _ => all(&options, "option"),
        },
        Tier::Tuning if has(&options, name) => {
            format!("the option {name:?} is no key of `tuning`: pass it beside that")
        }
        Tier::Tuning => all(&tuning, "key of `tuning`"),
    }
}

/// The names and values of an object. What is undefined is left out.
fn pairs<'e>(env: Env<'e>, given: Value<'e>) -> Result<Vec<(String, Value<'e>)>, Failure> {
    if env.kind(given) == Kind::Undefined {
        return Ok(Vec::new());
    }
    if env.kind(given) != Kind::Object || env.array_length(given).is_some() {
        return Err(wrong("options must be an object", None));
    }
    let unreadable = |_| wrong("the options could not be read", None);
    let mut pairs = Vec::new();
    for name in env.names(given).map_err(unreadable)? {
        let value = env.property(given, &name).map_err(unreadable)?;
        if env.kind(value) != Kind::Undefined {
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

fn form<'e>(env: Env<'e>, name: &str, value: Value<'e>, is_duration: bool) -> Result<Given, Failure> {
    let cannot = || wrong(format!("the option {name:?} has a value of the wrong type"), None);
    match env.kind(value) {
        Kind::Boolean => env.as_bool(value).map(Given::Bool).map_err(|_| cannot()),
        Kind::Number => match env.as_f64(value).map_err(|_| cannot())? {
            number if is_duration => Ok(Given::Real(number / 1_000.0)),
            number if number.fract() == 0.0 && number.abs() < 9e15 => Ok(Given::Integer(number as i64)),
            number => Ok(Given::Real(number)),
        },
        Kind::String if !env.is_whole(value) => Err(half_in(&format!("the option {name:?}"))),
        Kind::String => env.with_text(value, str::to_owned).map(Given::Text).map_err(|_| cannot()),
        Kind::Object if let Some(bytes) = env.with_bytes(value, <[u8]>::to_vec) => Ok(Given::Bytes(bytes)),
        Kind::Object if env.array_length(value).is_some() => env.texts(value).map(Given::Texts).map_err(|_| cannot()),
        Kind::Object => {
            let pairs = pairs(env, value)?.into_iter();
            let texts =
                pairs.map(|(name, value)| Ok((name, env.with_text(value, str::to_owned).map_err(|_| cannot())?)));
            texts.collect::<Result<_, Failure>>().map(Given::Pairs)
        }
        _ => Err(cannot()),
    }
}

/// Returns a key: a passphrase, or the 32 bytes of the key itself.
pub(crate) fn key<'e>(env: Env<'e>, given: Value<'e>) -> Result<Key, Failure> {
    let no_key = || wrong("the option \"key\" must be a passphrase, or the 32 bytes of the key itself", None);
    if env.kind(given) == Kind::String {
        if !env.is_whole(given) {
            return Err(half_in("the option \"key\""));
        }
        return env.with_text(given, Key::text).map_err(|_| no_key());
    }
    let raw = env.with_bytes(given, |bytes| bytes.try_into().ok().map(Key::raw));
    raw.flatten().ok_or_else(no_key)
}

/// Loads one extension: its path, or an array of that and its entry point; or those of an array.
fn with_extensions<'e>(env: Env<'e>, options: Options, given: Value<'e>) -> Result<Options, Failure> {
    let all = match env.array_length(given) {
        Some(count) => (0..count).map(|at| env.element(given, at)).collect(),
        None => Ok(vec![given]),
    };
    let unreadable = |_| wrong("the options could not be read", None);
    all.map_err(unreadable)?.into_iter().try_fold(options, |options, one| {
        let texts = match env.kind(one) {
            Kind::String => env.with_text(one, str::to_owned).map(|path| vec![path]),
            _ if env.array_length(one).is_some() => env.texts(one),
            _ => Ok(Vec::new()),
        };
        match texts.unwrap_or_default().as_slice() {
            [path] => Ok(options.load_extension(path, None)),
            [path, entry] => Ok(options.load_extension(path, Some(entry))),
            _ => Err(wrong(
                "the option \"loadExtension\" must be a path, or an array of paths and of [path, entry point]",
                None,
            )),
        }
    })
}

/// Returns migrations: the path of a folder, or an array of pairs of a name and SQL.
pub(crate) fn migrations<'e>(env: Env<'e>, given: Value<'e>) -> Result<Migrations, Failure> {
    if env.kind(given) == Kind::String {
        let path = env.with_text(given, str::to_owned).map_err(|_| wrong_migrations())?;
        return Ok(Migrations::from_dir(path)?);
    }
    let length = env.array_length(given).ok_or_else(wrong_migrations)?;
    let pair = |index| {
        let pair = whole_texts(env, env.element(given, index).map_err(|_| wrong_migrations())?)?;
        match <[String; 2]>::try_from(pair) {
            Ok([name, sql]) => Ok((name, sql)),
            Err(_) => Err(wrong_migrations()),
        }
    };
    Ok(Migrations::new((0..length).map(pair).collect::<Result<Vec<_>, _>>()?))
}

fn whole_texts<'e>(env: Env<'e>, pair: Value<'e>) -> Result<Vec<String>, Failure> {
    for index in 0..env.array_length(pair).unwrap_or(0) {
        let text = env.element(pair, index).map_err(|_| wrong_migrations())?;
        if env.kind(text) == Kind::String && !env.is_whole(text) {
            return Err(half_in("a migration"));
        }
    }
    env.texts(pair).map_err(|_| wrong_migrations())
}

fn wrong_migrations() -> Failure {
    wrong("migrations must be the path of a folder, or an array of [name, sql]", None)
}

fn snake(name: &str) -> String {
    let mut all = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            all.push('_');
        }
        all.push(letter.to_ascii_lowercase());
    }
    all
}

fn wrong(message: impl Into<String>, hint: Option<&'static str>) -> Failure {
    Failure::refused(ErrorCode::InvalidOption, message, hint)
}
