//! The honest part of the work: files written, deleted and edited.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use landfall_agents::script::{FileContent, ScriptEdit, ScriptTurn, ScriptWrite};

use super::perform::ScriptFailure;
use super::voice::PlayerOutput;

/// Makes all the changes of an iteration, in their order.
pub(super) fn apply_changes(voice: &mut PlayerOutput, turn: &ScriptTurn) -> Result<(), ScriptFailure> {
    for file in &turn.writes {
        write(file)?;
        voice.print_line(&format!("wrote {}", file.path.display()));
    }
    for path in &turn.deletes {
        delete_path(path)?;
        voice.print_line(&format!("deleted {}", path.display()));
    }
    for file in &turn.edits {
        edit_file(file)?;
        voice.print_line(&format!("edited {}", file.path.display()));
    }
    Ok(())
}

fn write(file: &ScriptWrite) -> Result<(), ScriptFailure> {
    let path = resolve_inside_workspace(&file.path)?;
    let trouble = |source| ScriptFailure::File { what: "write", path: file.path.clone(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(trouble)?;
    }
    match &file.content {
        FileContent::Whole(bytes) => fs::write(&path, bytes).map_err(trouble)?,
        FileContent::Append(text) => {
            let open = OpenOptions::new().append(true).create(true).open(&path);
            open.and_then(|mut open| open.write_all(text.as_bytes())).map_err(trouble)?;
        }
    }
    if file.executable {
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(trouble)?;
    }
    Ok(())
}

/// Deletes a file or a folder with all that is in it. A link is deleted, not what it leads to.
pub(super) fn delete_path(path: &Path) -> Result<(), ScriptFailure> {
    let trouble = |source| ScriptFailure::File { what: "delete", path: path.into(), source };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.map_or_else(|| Ok(PathBuf::from(".")), resolve_inside_workspace)?;
    let full = folder.join(path.file_name().expect("the script's paths end in a name"));
    let is_folder = fs::symlink_metadata(&full).map_err(trouble)?.is_dir();
    if is_folder { fs::remove_dir_all(&full) } else { fs::remove_file(&full) }.map_err(trouble)
}

fn edit_file(file: &ScriptEdit) -> Result<(), ScriptFailure> {
    let path = resolve_inside_workspace(&file.path)?;
    let trouble = |source| ScriptFailure::File { what: "edit", path: file.path.clone(), source };
    let text = fs::read_to_string(&path).map_err(trouble)?;
    if !text.contains(&file.find) {
        return Err(ScriptFailure::NotFound { path: file.path.clone(), find: file.find.clone() });
    }
    fs::write(&path, text.replace(&file.find, &file.replace)).map_err(trouble)
}

/// The path in the workspace, if no link on the way leads out of it. Scripts come with tasks, and a task must not
/// reach further than an agent would.
pub(super) fn resolve_inside_workspace(path: &Path) -> Result<PathBuf, ScriptFailure> {
    let trouble = |source: io::Error| ScriptFailure::File { what: "find", path: path.into(), source };
    let root = Path::new(".").canonicalize().map_err(trouble)?;
    let full = root.join(path);
    let there = full
        .ancestors()
        .find(|part| fs::symlink_metadata(part).is_ok())
        .expect("the workspace itself is there");
    if there.canonicalize().map_err(trouble)?.starts_with(&root) {
        Ok(full)
    } else {
        Err(ScriptFailure::Outside { path: path.into() })
    }
}
