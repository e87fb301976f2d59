//! What the operating system counts for this process.
//!
//! Owns: CPU time of the process and of the calling thread, memory, and threads. Leaves out: the time of day's clocks, which are
//! `Instant`.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

fn usage() -> Result<Usage> {
    Ok(getrusage(UsageWho::RUSAGE_SELF)?)
}

/// User and system time of all threads so far.
pub(crate) fn cpu() -> Result<Duration> {
    let usage = usage()?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}

/// User and system time of the calling thread so far.
pub(crate) fn thread_cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

/// The largest resident size so far, in bytes. Where the kernel tells it for this program alone that figure is used;
/// `getrusage` may include the program that started this one.
pub(crate) fn peak_rss() -> Result<u64> {
    if let Some(bytes) = status("VmHWM:") {
        return Ok(bytes);
    }
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    Ok(u64::try_from(usage()?.max_rss())? * unit)
}

/// The resident size now, in bytes, where the kernel tells it.
pub(crate) fn rss() -> Option<u64> {
    status("VmRSS:")
}

/// The number of threads now, where the kernel tells it.
pub(crate) fn threads() -> Option<u64> {
    fs::read_dir("/proc/self/task").ok().map(|tasks| tasks.count() as u64)
}

/// The number of open descriptors now, where the kernel tells it.
pub(crate) fn descriptors() -> Option<u64> {
    fs::read_dir("/proc/self/fd").ok().map(|descriptors| descriptors.count() as u64)
}

/// The bytes that this process had read from a disk so far, where the kernel tells it.
#[cfg(target_os = "linux")]
pub(crate) fn disk_reads() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

/// The bytes of this program's file that are mapped into memory, where the kernel tells it: its code and constants, without what only
/// a debugger reads.
pub(crate) fn mapped_program() -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let ranges = maps.lines().filter(|line| line.ends_with(program.to_str().unwrap_or("\0"))).filter_map(|line| {
        let (begin, end) = line.split_whitespace().next()?.split_once('-')?;
        u64::from_str_radix(end, 16).ok()?.checked_sub(u64::from_str_radix(begin, 16).ok()?)
    });
    Some(ranges.sum())
}

/// Makes the peak start over at the present size. Answers whether it could.
pub(crate) fn reset_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn status(key: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu_time_and_held_memory_is_resident() {
        let before = cpu().unwrap();
        let mut held = Vec::new();
        while cpu().unwrap() == before {
            held.extend_from_slice(&[1_u8; 1 << 16]);
        }
        assert!(peak_rss().unwrap() >= held.len() as u64);
    }

    #[test]
    fn a_thread_pays_for_its_own_work_only() {
        let before = thread_cpu().unwrap();
        while thread_cpu().unwrap() < before + Duration::from_millis(1) {}
        let other = std::thread::spawn(|| thread_cpu().unwrap()).join().unwrap();
        assert!(other < thread_cpu().unwrap(), "a new thread has used {other:?}");
    }
}
