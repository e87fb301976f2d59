//! The part: the process whose calls fail. It runs one case, and reports the result of each write.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::answers::Answer;
use super::case::Case;
use super::writes::{SCHEMA, Work};
use super::{after, load};
use crate::faults;
use crate::finding::Finding;
use crate::gauge::{Gauge, Hold};
use crate::leftovers::Belongings;
use crate::round::Counts;

/// The part prints this when the files are to be copied; it continues when it reads a line.
pub(super) const COPY: &str = "copy";

/// The content of a part's last line.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) answers: Vec<Answer>,
    pub(super) counts: Counts,
    pub(super) hold: Hold,
    /// The number of answers when the files were copied.
    pub(super) copied_after: usize,
    pub(super) met: u64,
    pub(super) finding: Option<Finding>,
}

static PANICS: AtomicU64 = AtomicU64::new(0);

pub(super) fn run(args: &[String]) -> ExitCode {
    let [case, directory] = args else { return ExitCode::from(2) };
    let Ok(case) = serde_json::from_str(case) else { return ExitCode::from(2) };
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
    let told = told(&case, Path::new(directory));
    println!("{}", serde_json::to_string(&told).expect("answers and texts are JSON"));
    ExitCode::SUCCESS
}

fn told(case: &Case, directory: &Path) -> Told {
    let mut told = Told::default();
    let work = Work::new(case.plan.clone(), case.attached, directory);
    let ended = with_runtime(case, directory, &work, &mut told);
    let ended = ended.and_then(|()| match PANICS.load(Ordering::SeqCst) {
        0 => Ok(()),
        panics => Err(Finding::new(format!("{panics} panics"))),
    });
    Told { finding: ended.err(), answers: work.answers.take(), counts: work.counts.take(), ..told }
}

fn with_runtime(case: &Case, directory: &Path, work: &Work, told: &mut Told) -> Result<(), Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_millis(1))
        .build()?;
    let ended = runtime.block_on(all(case, directory, work, told));
    // A call that hangs must not prevent the part from reporting it.
    runtime.shutdown_background();
    ended
}

async fn all(case: &Case, directory: &Path, work: &Work, told: &mut Told) -> Result<(), Finding> {
    faults::disarm()?;
    let gauge = Gauge::new();
    let options = load::options(case, directory);
    let db = options.clone().open().await?;
    db.execute_script(SCHEMA).await?;
    db.close().await?;
    let before = Belongings::now();
    let db = if case.while_opening { None } else { Some(options.clone().open().await?) };
    faults::arm(&case.plan.order())?;
    work.is_calm.set(false);
    let db = load::run(case, work, &options, &gauge, db).await;
    faults::disarm()?;
    told.met = faults::met()?;
    work.is_calm.set(true);
    let db = db?;
    told.copied_after = work.answers.borrow().len();
    copied()?;
    after::goes_on(work, &options, directory, db).await?;
    before.are_back()?;
    gauge.read(&mut told.hold)
}

/// Asks the supervising process to copy the files. If this process read them itself, closing them would release its locks.
fn copied() -> Result<(), Finding> {
    println!("{COPY}");
    std::io::stdout().flush()?;
    std::io::stdin().lock().read_line(&mut String::new())?;
    Ok(())
}
