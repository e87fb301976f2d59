//! Checking whether a path is on a file system that is safe for a database.
//!
//! Owns: the table of network and shared file systems, and finding the mount for the error message. WAL mode needs
//! memory that all users of a file share, which machines on a network do not have
//! (<https://sqlite.org/wal.html#noshm>), and the locks of such file systems are often broken
//! (<https://sqlite.org/howtocorrupt.html#_filesystems_with_broken_or_missing_lock_implementations>). Runs on the
//! thread that opens a database. Linux only: on other systems every path passes. Leaves out: the option that allows
//! such a file system.

use std::path::{Path, PathBuf};

use flatwater_sqlite::filesystem_magic;

use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};

/// The magic numbers of `statfs` (linux/magic.h and the file systems' own headers).
const NETWORK: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9p"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x1983_0326, "BeeGFS"),
    (0x564C, "NCP"),
    (0x786F_4256, "a VirtualBox shared folder"),
    (0xBACB_ACBC, "a VMware shared folder"),
    (0x7C7C_6673, "a Parallels shared folder"),
];
/// FUSE, and virtiofs, which has the same number: only the name of the type distinguishes them.
const FUSE: u32 = 0x6573_5546;
const SHARED_FUSE: &[(&str, &str)] = &[
    ("virtiofs", "virtiofs"),
    ("fuse.sshfs", "sshfs"),
    ("fuse.s3fs", "s3fs"),
    ("fuse.gcsfuse", "gcsfuse"),
    ("fuse.goofys", "goofys"),
    ("fuse.mount-s3", "S3"),
    ("fuse.rclone", "rclone"),
    ("fuse.juicefs", "JuiceFS"),
    ("fuse.glusterfs", "GlusterFS"),
    ("fuse.ceph", "Ceph"),
    ("fuse.ceph-fuse", "Ceph"),
    ("fuse.davfs", "WebDAV"),
    ("fuse.blobfuse", "Azure Blob"),
    ("fuse.blobfuse2", "Azure Blob"),
    ("fuse.grpcfuse", "a Docker Desktop share"),
    ("fuse.osxfs", "a Docker Desktop share"),
    ("fuse.vmhgfs-fuse", "a VMware shared folder"),
    ("fakeowner", "a Docker Desktop share"),
];

/// Returns an error if the file system of `path` is on a network or shared with another machine. The file need not
/// exist.
pub(crate) fn refuse_network(path: &Path) -> Result<()> {
    let exists = path.ancestors().find(|ancestor| ancestor.exists());
    let Some(magic) = exists.and_then(filesystem_magic) else { return Ok(()) };
    let mount = || {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        mount_of(&mounts, path)
    };
    let Some((kind, mount)) = shared(magic, mount) else { return Ok(()) };
    let at = mount.map_or_else(String::new, |mount| format!(", mounted at {}", mount.display()));
    Err(Error::new(
        ErrorCode::NetworkFileSystem,
        format!("{} is on a file system shared with other machines ({kind}{at})", path.display()),
    )
    .with_hint(hint![
        "SQLite loses data there; put the file on a local disk or a named volume, or set " NetworkFilesystem
        " if only this machine uses it"
    ])
    .in_operation("open"))
}

/// Returns the kind of shared file system and its mount point, or `None` if the file system is local.
fn shared(magic: u32, mount: impl FnOnce() -> Option<Mount>) -> Option<(&'static str, Option<PathBuf>)> {
    if let Some((_, kind)) = NETWORK.iter().find(|(number, _)| *number == magic) {
        return Some((kind, mount().map(|mount| mount.point)));
    }
    if magic != FUSE {
        return None;
    }
    let mount = mount()?;
    let (_, kind) = SHARED_FUSE.iter().find(|(name, _)| *name == mount.kind)?;
    Some((kind, Some(mount.point)))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    point: PathBuf,
    kind: String,
}

/// The mount of a path: the last of the longest mount points above it
/// (<https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html>).
fn mount_of(mounts: &str, path: &Path) -> Option<Mount> {
    let parsed = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = unescape(before.split(' ').nth(4)?);
        Some(Mount { point: point.into(), kind: after.split(' ').next()?.to_owned() })
    });
    let above = parsed.filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// Decodes spaces and similar characters, which the list contains as octal numbers after a backslash.
fn unescape(point: &str) -> String {
    let mut parts = point.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => out.extend([char::from(byte).to_string().as_str(), &part[3..]]),
            None => out.extend(["\\", part]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:45 / /srv rw - ext4 /dev/vdb rw
31 30 0:46 /data /srv/my\\040data rw,nosuid shared:7 - nfs4 server:/x rw
32 22 0:47 / /host rw - virtiofs tag rw
33 22 0:48 / /home/me/ssh rw - fuse.sshfs me@host:/ rw
34 22 0:49 / /ntfs rw - fuseblk /dev/sdb1 rw";

    fn verdict(magic: u32, path: &str) -> Option<(&'static str, Option<PathBuf>)> {
        shared(magic, || mount_of(MOUNTS, Path::new(path)))
    }

    #[test]
    fn a_path_lies_on_the_longest_mount_point_above_it() {
        let kind = |path: &str| mount_of(MOUNTS, Path::new(path)).unwrap().kind;
        assert_eq!(kind("/srv/my data/a.db"), "nfs4");
        assert_eq!(kind("/srv/other/a.db"), "ext4");
        assert_eq!(kind("/hostile/a.db"), "ext4");
    }

    #[test]
    fn network_and_shared_file_systems_are_distinguished_from_local_ones() {
        let nfs = verdict(0x6969, "/srv/my data/a.db");
        assert_eq!(nfs, Some(("NFS", Some("/srv/my data".into()))));
        assert_eq!(verdict(FUSE, "/host/a.db"), Some(("virtiofs", Some("/host".into()))));
        assert_eq!(verdict(FUSE, "/home/me/ssh/a.db"), Some(("sshfs", Some("/home/me/ssh".into()))));
        assert_eq!(verdict(FUSE, "/ntfs/a.db"), None, "a local file system behind FUSE");
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x794C_7630, 0x2FC1_2FC1] {
            assert_eq!(verdict(local, "/srv/a.db"), None, "{local:#x}: ext4, tmpfs, XFS, btrfs, overlay, ZFS");
        }
    }

    #[test]
    fn this_machines_own_directory_passes_also_for_a_file_to_be_made() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(refuse_network(&directory.path().join("no/such/file")), Ok(()));
    }
}
