//! The properties of the machine that affect measurements. Leaves out: everything that identifies its owner.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sysinfo::{Disks, System};

const UNKNOWN: &str = "unknown";

/// The machine that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// The processor's model name.
    pub cpu: String,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// The memory in GiB, rounded.
    pub memory_gib: u64,
    /// The operating system.
    pub os: String,
    /// Its kernel.
    pub kernel: String,
    /// The processor's architecture.
    pub arch: String,
    /// The file system of the trials' databases.
    pub filesystem: String,
}

impl Machine {
    /// Returns the properties of this machine; the databases are in `trials`.
    pub fn here(trials: &Path) -> Self {
        let (cpu, memory) = processor_and_memory().unwrap_or_default();
        Self {
            cpu: if cpu.is_empty() { UNKNOWN.to_owned() } else { cpu },
            cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
            memory_gib: (memory as f64 / f64::from(1 << 30)).round() as u64,
            os: System::long_os_version().unwrap_or_else(|_| std::env::consts::OS.to_owned()),
            kernel: System::kernel_version().unwrap_or_default(),
            arch: std::env::consts::ARCH.to_owned(),
            filesystem: filesystem(trials),
        }
    }
}

fn processor_and_memory() -> Result<(String, u64), sysinfo::Error> {
    let mut system = System::new()?;
    system.refresh_memory();
    system.refresh_cpu_all();
    let cpu = system.cpus().first().map(|cpu| cpu.brand().trim().to_owned());
    Ok((cpu.unwrap_or_default(), system.total_memory()))
}

/// Returns the file system of the longest mount point that contains the folder.
fn filesystem(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let Ok(disks) = Disks::new_with_refreshed_list() else {
        return UNKNOWN.to_owned();
    };
    let holding = disks.iter().filter(|disk| folder.starts_with(disk.mount_point()));
    let nearest = holding.max_by_key(|disk| disk.mount_point().as_os_str().len());
    nearest.map_or_else(|| UNKNOWN.to_owned(), |disk| disk.file_system().to_string_lossy().into_owned())
}
