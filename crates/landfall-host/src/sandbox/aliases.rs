//! Second names of hidden places: a file system that is mounted twice, or a part of it that is mounted elsewhere, shows the
//! same files under another path. Landlock looks at paths, so each of these paths has to be hidden too.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// One line of the kernel's list of mounts.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: Vec<u8>,
    /// Which folder of the file system is mounted.
    root: PathBuf,
    /// Where.
    point: PathBuf,
    /// The folders that it shows, if it is an overlay: its files have other devices, but the same content.
    layers: Vec<PathBuf>,
}

/// The mounts that this process sees, by which aliases are found.
pub(super) struct MountList(Vec<Mount>);

impl MountList {
    /// As bytes: a mount point need not be UTF-8.
    pub(super) fn read() -> std::io::Result<MountList> {
        std::fs::read("/proc/self/mountinfo").map(|list| MountList::parse(&list))
    }

    fn parse(list: &[u8]) -> MountList {
        // Id, parent, device, root, mount point, options, more of them, a dash, kind, source, options of the kind.
        let mount = |line: &[u8]| {
            let mut fields = line.split(|byte| *byte == b' ').skip(2);
            let device = fields.next()?.to_owned();
            let (root, point) = (unescape_octal(fields.next()?), unescape_octal(fields.next()?));
            let mut kind = fields.skip_while(|field| *field != b"-").skip(1);
            let layers = match (kind.next(), kind.nth(1)) {
                (Some(b"overlay" | b"fuse.fuse-overlayfs"), Some(options)) => layers_of(options),
                _ => Vec::new(),
            };
            Some(Mount { device, root, point, layers })
        };
        MountList(list.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// The other paths under which what is at `path` can be reached, whole or in part.
    pub(super) fn find_aliases(&self, path: &Path) -> Vec<PathBuf> {
        // Later mounts cover earlier ones, so of two with the same point the last one counts.
        let holders = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        let Some(holder) = holders.max_by_key(|mount| mount.point.components().count()) else {
            return Vec::new();
        };
        let below = path.strip_prefix(&holder.point).expect("its holder");
        let inside = holder.root.join(below);
        let alias = |mount: &Mount| -> Option<PathBuf> {
            if mount.device != holder.device {
                return None;
            }
            let alias = match (inside.strip_prefix(&mount.root), mount.root.strip_prefix(&inside)) {
                (Ok(below), _) => mount.point.join(below),
                (Err(_), Ok(_)) => mount.point.clone(),
                (Err(_), Err(_)) => return None,
            };
            (!alias.starts_with(path) && alias != Path::new("/")).then_some(alias)
        };
        let through_overlay = |mount: &Mount| {
            // What the place itself lies on is no second name of it, whatever a relative layer may be.
            let is_around = path.starts_with(&mount.point);
            let layers = mount.layers.iter().filter(|layer| layer.is_absolute() || !is_around);
            let layers = layers.flat_map(|layer| possible_layers(layer, path));
            let shown = layers.filter_map(|layer| {
                let layer = &layer;
                let shown = match (path.strip_prefix(layer), layer.strip_prefix(path)) {
                    (Ok(below), _) => mount.root.strip_prefix("/").ok().map(|root| (below, root)),
                    (Err(_), Ok(_)) => return Some(mount.point.clone()),
                    (Err(_), Err(_)) => None,
                };
                // A part of an overlay may be mounted alone.
                let (below, root) = shown?;
                match (below.strip_prefix(root), root.strip_prefix(below)) {
                    (Ok(below), _) => Some(mount.point.join(below)),
                    (Err(_), Ok(_)) => Some(mount.point.clone()),
                    (Err(_), Err(_)) => None,
                }
            });
            let is_other = |alias: &PathBuf| !alias.starts_with(path) && alias != Path::new("/");
            shown.filter(is_other).collect::<Vec<_>>()
        };
        let mut found: Vec<PathBuf> = self.0.iter().filter_map(alias).collect();
        found.extend(self.0.iter().flat_map(through_overlay));
        found.sort();
        found.dedup();
        found
    }
}

/// What a layer of an overlay may be, as far as it matters for the hidden `path`. A relative one was named from a folder that
/// is not known: then it may be each folder around `path` that ends so, or else what lies so below it or below a folder of it.
fn possible_layers(layer: &Path, path: &Path) -> Vec<PathBuf> {
    const FOLDERS_MAX: usize = 1_000;
    if layer.is_absolute() {
        return vec![layer.to_owned()];
    }
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let end: PathBuf = layer.components().filter(is_plain).collect();
    let around = path.ancestors().filter(|above| above.parent().is_some() && above.ends_with(&end));
    let mut possible: Vec<PathBuf> = around.map(Path::to_owned).collect();
    if possible.is_empty() {
        let inside = std::fs::read_dir(path).into_iter().flatten().flatten().take(FOLDERS_MAX);
        let folders = std::iter::once(path.to_owned()).chain(inside.map(|entry| entry.path()));
        possible.extend(folders.map(|folder| folder.join(&end)).filter(|layer| layer.is_dir()));
    }
    possible
}

/// The folders of an overlay, as its options name them.
fn layers_of(options: &[u8]) -> Vec<PathBuf> {
    let folders = options.split(|byte| *byte == b',').filter_map(|option| {
        let at = option.iter().position(|byte| *byte == b'=')?;
        let is_layer = matches!(&option[..at], b"lowerdir" | b"lowerdir+" | b"datadir+" | b"upperdir");
        is_layer.then(|| &option[at + 1..])
    });
    let folders =
        folders.flat_map(|value| value.split(|byte| *byte == b':')).filter(|folder| !folder.is_empty());
    folders.map(unescape_octal).collect()
}

/// Whether two paths lead to the same file.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// The kernel writes blanks, tabs, line ends and backslashes as three octal digits.
fn unescape_octal(bytes: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let code = code.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 4 } else { 1 };
    }
    std::ffi::OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_aliases(mounts: &[&str], path: &str, expected: &[&str]) {
        let lines: Vec<String> = mounts
            .iter()
            .enumerate()
            .map(|(at, mount)| format!("{at} 1 {mount} rw - ext4 /dev/x rw"))
            .collect();
        let found = MountList::parse(lines.join("\n").as_bytes()).find_aliases(Path::new(path));
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(found, expected, "{mounts:?}");
    }

    #[test]
    fn a_second_mount_of_or_above_or_below_a_place_is_an_alias() {
        let disk = "8:1 / /";
        assert_aliases(&[disk], "/home/me", &[]);
        assert_aliases(&[disk, "8:1 /home/me /mnt/me"], "/home/me", &["/mnt/me"]);
        assert_aliases(&[disk, "8:1 / /mnt/all"], "/home/me", &["/mnt/all/home/me"]);
        assert_aliases(&[disk, "8:1 /home /mnt/h\\040x"], "/home/me", &["/mnt/h x/me"]);
        assert_aliases(&[disk, "8:1 /home/me/.ssh /srv/keys"], "/home/me", &["/srv/keys"]);
        assert_aliases(&[disk, "8:2 / /home", "8:2 /me /mnt/me"], "/home/me", &["/mnt/me"]);
    }

    #[test]
    fn an_overlay_over_a_place_is_an_alias() {
        let check = |options: &str, root: &str, expected: &[&str]| {
            let list = format!(
                "1 0 8:1 / / rw - ext4 /dev/x rw\n2 1 0:40 {root} /mnt/o rw shared:3 - overlay o rw,{options}\n"
            );
            let found = MountList::parse(list.as_bytes()).find_aliases(Path::new("/home/me"));
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{options}");
        };
        check("lowerdir=/home/me,upperdir=/x,workdir=/y", "/", &["/mnt/o"]);
        check("lowerdir=/a:/home,upperdir=/x,workdir=/y", "/", &["/mnt/o/me"]);
        check("lowerdir=/home/me/.ssh:/a", "/", &["/mnt/o"]);
        check("lowerdir=/a,upperdir=/,workdir=/y", "/", &["/mnt/o/home/me"]);
        check("lowerdir+=/a,lowerdir+=/home", "/me", &["/mnt/o"]);
        check("lowerdir=/home", "/you", &[]);
        check("lowerdir=/home/you:l/home,workdir=/home/me/w", "/", &[]);
        // From which folder it was named is not known.
        check("lowerdir=me:/a", "/", &["/mnt/o"]);
        check("lowerdir=home,upperdir=x", "/", &["/mnt/o/me"]);
        check("lowerdir=../home/me", "/", &["/mnt/o"]);
        check("lowerdir=.", "/", &["/mnt/o", "/mnt/o/me"]);
        check("lowerdir=l/ABCDEF:l/XYZ,upperdir=diff", "/", &[]);
    }

    #[test]
    fn a_folder_of_a_hidden_place_may_be_a_relative_layer() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("me");
        std::fs::create_dir_all(home.join("work/keys")).expect("ours");
        for (layer, expected) in [("keys", &["work/keys"][..]), ("work", &["work"]), ("other", &[])] {
            let expected: Vec<PathBuf> = expected.iter().map(|name| home.join(name)).collect();
            assert_eq!(possible_layers(Path::new(layer), &home), expected, "{layer}");
        }
    }

    #[test]
    fn a_mount_point_that_is_not_utf_8_hides_no_other_mount() {
        let list = b"1 1 8:1 / / rw\n2 1 8:2 / /mnt/x\xe9 rw\n3 1 8:1 /home/me /mnt/me rw\n";
        assert_eq!(MountList::parse(list).find_aliases(Path::new("/home/me")), [PathBuf::from("/mnt/me")]);
    }

    #[test]
    fn what_lies_elsewhere_or_below_the_place_itself_is_none() {
        let disk = "8:1 / /";
        assert_aliases(&[disk, "8:2 /home/me /mnt/me"], "/home/me", &[]);
        assert_aliases(&[disk, "8:1 /home/you /mnt/you"], "/home/me", &[]);
        assert_aliases(&[disk, "8:1 /home/me/a /home/me/b"], "/home/me", &[]);
        assert_aliases(&[disk, "8:1 / /", "8:1 /home/me /"], "/home/me", &[]);
    }
}
