//! The files of a project that hooks and message commands run. These commands run outside of the sandbox, so what the files hold
//! is a part of what the person trusts: an update of the repository may change a script and leave `landfall.toml` as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landfall_host::git::{BlobContent, BlobReader, GitError, Oid, Repo, Store};
use landfall_host::user_file::read_user_file;
use landfall_model::gaming::{INPUT_BYTES_MAX, InputTrace, ProtectedInput, is_code, is_input_path};

use crate::settings::{SensitiveSettings, Settings};
use crate::trust::{TrustStore, TrustVerdict};

/// A larger file is known by its size alone: it is no script that a person reads.
const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// The settings that a person has to trust, with the files of the checkout that their commands run. Only files that git tracks
/// count: a hook may write others.
///
/// # Errors
/// When the tracked files cannot be listed.
pub fn sensitive_in_checkout(settings: &Settings, repo: &Repo) -> Result<SensitiveSettings, GitError> {
    let sensitive = SensitiveSettings::from_settings(settings);
    if settings.unconfined_commands().is_empty() {
        return Ok(sensitive);
    }
    let files =
        CheckoutFiles { root: repo.root(), tracked: repo.tracked_objects()?, blobs: repo.blob_reader() };
    Ok(sensitive.with_scripts(digest_scripts(settings, repo.root(), &files)?))
}

/// The same with the files of a commit. `root` is that of the checkout.
///
/// # Errors
/// When the commit cannot be read.
pub fn sensitive_in_commit(
    settings: &Settings,
    root: &Path,
    store: &Store,
    commit: &Oid,
) -> Result<SensitiveSettings, GitError> {
    let sensitive = SensitiveSettings::from_settings(settings);
    if settings.unconfined_commands().is_empty() {
        return Ok(sensitive);
    }
    let files = CommitFiles { store, commit };
    Ok(sensitive.with_scripts(digest_scripts(settings, root, &files)?))
}

/// What was trusted when a run began, to be compared with what is there when a command is about to run.
#[derive(Debug)]
pub struct HookTrust {
    settings: Settings,
    repo: Repo,
    store: TrustStore,
}

impl HookTrust {
    /// That of a project with these settings.
    #[must_use]
    pub fn new(settings: &Settings, repo: &Repo, store: TrustStore) -> Arc<Self> {
        Arc::new(Self { settings: settings.clone(), repo: repo.clone(), store })
    }

    /// Whether the commands of these settings may run now.
    ///
    /// # Errors
    /// Why they may not.
    pub fn check_trusted(&self) -> Result<(), String> {
        let sensitive = sensitive_in_checkout(&self.settings, &self.repo)
            .map_err(|error| format!("not run, because the files that it runs cannot be read: {error}"))?;
        match self.store.judge(&sensitive) {
            Ok(TrustVerdict::Nothing | TrustVerdict::Trusted) => Ok(()),
            Ok(TrustVerdict::Changed | TrustVerdict::Unasked) => {
                Err("not run, because a file that it runs has changed since you trusted it; type `landfall trust`"
                    .to_owned())
            }
            Err(error) => Err(format!("not run: {error}")),
        }
    }
}

/// What a project has at a path.
enum ProjectFile {
    /// No file, or a folder.
    None,
    /// A file with this content.
    Content(Vec<u8>),
    /// A file of this many bytes, which is not read.
    Large(u64),
    /// The path, or a folder above it, is a link.
    Link { link: String, target: String },
}

/// Where the files of a project are read.
trait ScriptSource {
    fn read(&self, path: &str) -> Result<ProjectFile, GitError>;

    /// The files whose paths begin with this text.
    fn paths_with(&self, start: &str) -> Result<Vec<String>, GitError>;
}

/// The files that the commands of these settings run or read, with the digest of what each holds.
fn digest_scripts(
    settings: &Settings,
    root: &Path,
    files: &dyn ScriptSource,
) -> Result<BTreeMap<String, String>, GitError> {
    let mut inputs = Vec::new();
    for (setting, line) in settings.unconfined_commands() {
        let mut trace = InputTrace::from_unconfined_command(&setting, &within_project(&line, root));
        while let Some(path) = trace.next_path() {
            match files.read(&path)? {
                ProjectFile::Content(bytes) if bytes.len() as u64 <= INPUT_BYTES_MAX => {
                    trace.provide_file(&path, Some(String::from_utf8_lossy(&bytes).into_owned()));
                }
                ProjectFile::Content(_) | ProjectFile::Large(_) | ProjectFile::None => {
                    trace.provide_file(&path, None)
                }
                ProjectFile::Link { link, target } => trace.provide_link(&path, &link, &target),
            }
        }
        inputs.extend(trace.into_inputs());
    }
    let mut scripts = BTreeMap::new();
    for ProtectedInput { path, .. } in &inputs {
        if let Some((start, _)) = path.split_once('*') {
            let pattern = inputs.iter().filter(|input| input.path == *path).cloned().collect::<Vec<_>>();
            for found in files.paths_with(start)?.into_iter().filter(|found| is_input_path(found, &pattern)) {
                // A folder that a command names may be data, such as a site that is copied to a server.
                let digest = digest_of(&files.read(&found)?, |bytes| is_program(&found, bytes));
                scripts.extend(digest.map(|digest| (found, digest)));
            }
        } else {
            let digest = digest_of(&files.read(path)?, |_| true);
            scripts.extend(digest.map(|digest| (path.clone(), digest)));
        }
    }
    Ok(scripts)
}

fn digest_of(file: &ProjectFile, counts: impl Fn(&[u8]) -> bool) -> Option<String> {
    match file {
        ProjectFile::Content(bytes) => counts(bytes).then(|| blake3::hash(bytes).to_hex().to_string()),
        ProjectFile::Large(bytes) => Some(format!("{bytes} bytes")),
        ProjectFile::Link { link, target } => Some(format!("link {link} {target}")),
        ProjectFile::None => None,
    }
}

fn is_program(path: &str, bytes: &[u8]) -> bool {
    const MAKEFILES: [&str; 3] = ["Makefile", "makefile", "GNUmakefile"];
    let name = path.rsplit('/').next().unwrap_or(path);
    bytes.starts_with(b"#!") || is_code(path) || MAKEFILES.contains(&name)
}

/// A command as if it named files of the project by their paths below its root, where it is run.
pub(crate) fn within_project(line: &str, root: &Path) -> String {
    const NAMES: [&str; 6] = [
        "$LANDFALL_PROJECT",
        "${LANDFALL_PROJECT}",
        "$AXIOM_PROJECT_ROOT",
        "${AXIOM_PROJECT_ROOT}",
        "$PWD",
        "${PWD}",
    ];
    let root = root.to_string_lossy();
    // `"$PWD"/x` and `"$PWD/x"` are the same.
    let names =
        NAMES.into_iter().chain([&*root]).flat_map(|name| [format!("\"{name}\"/"), format!("{name}/")]);
    names.filter(|name| name.len() > 1).fold(line.to_owned(), |line, name| line.replace(&name, "./"))
}

/// The files of a checkout. Of one that is as in the index, the content that git keeps counts: on disk it may have other line
/// endings, or what a filter makes of it, and a commit with the same files must have the same digest.
struct CheckoutFiles<'a> {
    root: &'a Path,
    /// What git tracks, with the object of each file that is as in the index.
    tracked: BTreeMap<String, Option<Oid>>,
    blobs: BlobReader,
}

impl ScriptSource for CheckoutFiles<'_> {
    fn read(&self, path: &str) -> Result<ProjectFile, GitError> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let link = &path[..end];
            if let Ok(target) = std::fs::read_link(self.root.join(link)) {
                let (link, target) = (link.to_owned(), target.to_string_lossy().into_owned());
                return Ok(ProjectFile::Link { link, target });
            }
        }
        let Some(oid) = self.tracked.get(path) else { return Ok(ProjectFile::None) };
        let blob = oid.as_ref().map(|oid| self.blobs.read_content(oid, SCRIPT_BYTES_MAX)).transpose()?;
        match blob.flatten() {
            Some(BlobContent::Whole(bytes)) => return Ok(ProjectFile::Content(bytes)),
            Some(BlobContent::Larger(bytes)) => return Ok(ProjectFile::Large(bytes)),
            None => {} // it is changed, or its object is only in another repository
        }
        let file: PathBuf = self.root.join(path);
        Ok(match read_user_file(&file, SCRIPT_BYTES_MAX) {
            Ok(bytes) => ProjectFile::Content(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                ProjectFile::Large(std::fs::metadata(&file).map_or(0, |meta| meta.len()))
            }
            Err(_) => ProjectFile::None, // nothing that a command could read either
        })
    }

    fn paths_with(&self, start: &str) -> Result<Vec<String>, GitError> {
        let from = self.tracked.range(start.to_owned()..).map(|(path, _)| path);
        Ok(from.take_while(|path| path.starts_with(start)).cloned().collect())
    }
}

/// The files of a commit.
struct CommitFiles<'a> {
    store: &'a Store,
    commit: &'a Oid,
}

impl ScriptSource for CommitFiles<'_> {
    fn read(&self, path: &str) -> Result<ProjectFile, GitError> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            if let Some(target) = self.store.read_link(self.commit, &path.as_bytes()[..end])? {
                let target = String::from_utf8_lossy(&target).into_owned();
                return Ok(ProjectFile::Link { link: path[..end].to_owned(), target });
            }
        }
        if let Some(bytes) = self.store.read_small_blob(self.commit, path.as_bytes(), SCRIPT_BYTES_MAX)? {
            return Ok(ProjectFile::Content(bytes));
        }
        let size = self.store.blob_size(self.commit, path.as_bytes())?;
        Ok(size.map_or(ProjectFile::None, ProjectFile::Large))
    }

    fn paths_with(&self, start: &str) -> Result<Vec<String>, GitError> {
        let top = start.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut found = self.store.files_below(self.commit, top)?;
        found.retain(|path| path.starts_with(start));
        found.sort();
        Ok(found)
    }
}
