//! Mending metadata that cannot be used, without losing a word of it.
//!
//! The broken file is kept beside as `<file>.corrupt-<day>` before anything else is written, and a note in `.analysis/`
//! says what was wrong and what was done. Fields that can be read stay; a field that cannot is taken from the last
//! commit; a file of which nothing can be read is restored from there; without a commit it is built anew as a draft.

use landfall_model::Timestamp;
use serde_json::Value;

use super::document::{Document, Syntax};
use super::entry::{EntryFolder, EntryName};
use super::folder::{ModuleFolderSnapshot, ModuleLocation};
use super::metadata::{FIELDS, Metadata, MetadataFormat, parse_document};
use super::problem::ModuleFormatError;
use super::record::{ModuleRecord, ModuleStatus};
use super::text::{format_day, format_timestamp};
use super::write::{ExpectedFile, FileError, ModuleWrite};

/// Where the mended file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairOrigin {
    /// Only these fields were unusable; the others are as they were. Named with where their values are from.
    Fields(Vec<String>),
    /// The last commit.
    Head,
    /// Built anew from what could be read.
    Rebuilt(Vec<String>),
}

/// What was done.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataRepair {
    /// The metadata as it is now.
    pub metadata: Metadata,
    /// Where it is from.
    pub origin: RepairOrigin,
    /// Where the broken file is kept, below the folder.
    pub copy: String,
    /// The note about it, below the folder.
    pub note: String,
}

/// Mends the metadata of a folder, if it needs that. `head` gives the bytes of a path of the last commit.
///
/// # Errors
/// When files cannot be written. The broken file is still there then.
pub fn repair_folder_metadata(
    seen: &ModuleFolderSnapshot,
    head: impl FnOnce(&str) -> Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Option<MetadataRepair>, FileError> {
    let (Some(Err(unread)), Some(broken)) = (&seen.metadata, seen.files.get(seen.form.file_name())) else {
        return Ok(None);
    };
    let file = seen.form.file_name();
    let committed = head(&format!("{}/{file}", seen.place.shown_path()))
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .and_then(|text| Metadata::read(seen.form, &text).ok());
    let (metadata, origin) =
        repaired_metadata(seen.form, &broken.lossy_text(), committed.as_ref(), &seen.place.name, now);
    let place = &seen.place;
    let copy = keep_copy(place, &broken.bytes, |n| match n {
        1 => format!("{file}.corrupt-{}", format_day(now)),
        n => format!("{file}.corrupt-{}-{n}", format_day(now)),
    })?;
    let text = render_repair_note(file, &unread.errors, &origin, &copy, now);
    let note = keep_copy(place, text.as_bytes(), |n| {
        let about = if n == 1 { "index-recovery".to_owned() } else { format!("index-recovery-{n}") };
        format!("{}/{}", EntryFolder::Analysis, EntryName::new(&format_day(now), &about).file_name())
    })?;
    let write = ModuleWrite::Put {
        path: file.to_owned(),
        bytes: metadata.text().as_bytes().to_vec(),
        expect: ExpectedFile::Digest(broken.digest.clone()),
    };
    let applied = place.apply(&[write])?;
    // Somebody was faster and wrote the file anew: theirs counts, and our copy harms nobody.
    Ok(applied.refused.is_empty().then_some(MetadataRepair { metadata, origin, copy, note }))
}

/// Writes bytes under the first name that is free, or that holds the same already.
fn keep_copy(
    place: &ModuleLocation,
    bytes: &[u8],
    name: impl Fn(usize) -> String,
) -> Result<String, FileError> {
    for n in 1.. {
        let path = name(n);
        let write =
            ModuleWrite::Put { path: path.clone(), bytes: bytes.to_vec(), expect: ExpectedFile::Absent };
        if place.apply(&[write])?.refused.is_empty() {
            return Ok(path);
        }
    }
    unreachable!("names do not run out")
}

/// The metadata that should be there instead of `broken`.
#[must_use]
pub fn repaired_metadata(
    form: MetadataFormat,
    broken: &str,
    committed: Option<&Metadata>,
    name: &str,
    now: Timestamp,
) -> (Metadata, RepairOrigin) {
    if let Ok(document) = Document::read(form.syntax(), broken) {
        let mut taken = Vec::new();
        let document = without_bad_fields(document, committed, &mut taken);
        let metadata = Metadata::read(form, document.text()).expect("every bad field was replaced");
        return (metadata, RepairOrigin::Fields(taken));
    }
    if let Some(committed) = committed {
        return (committed.clone(), RepairOrigin::Head);
    }
    let mut document = match form.syntax() {
        Syntax::Json => salvaged_json(broken),
        Syntax::FrontMatter => salvaged_front_matter(broken),
    };
    document = without_bad_fields(document, None, &mut Vec::new());
    let kept: Vec<String> = document.fields().iter().map(|field| field.key.clone()).collect();
    let read = Metadata::read(form, document.text()).expect("every bad field was replaced");
    let title = if read.module.title.is_empty() { name.to_owned() } else { read.module.title.clone() };
    let created =
        if read.module.created.is_empty() { format_timestamp(now) } else { read.module.created.clone() };
    // What a torn file says about progress is not to be built on.
    let draft = ModuleRecord {
        title,
        created,
        updated: format_timestamp(now),
        status: ModuleStatus::Draft,
        ..read.module.clone()
    };
    (read.with_module(&draft), RepairOrigin::Rebuilt(kept))
}

fn without_bad_fields(
    mut document: Document,
    committed: Option<&Metadata>,
    taken: &mut Vec<String>,
) -> Document {
    loop {
        let reading = parse_document(&document);
        let Some((name, _)) = reading.bad.first() else { return document };
        let names = FIELDS.iter().find(|names| names[0] == *name).expect("bad fields are known fields");
        let key = names.iter().find(|name| document.fields().iter().any(|field| field.key == **name));
        let key = *key.expect("a field that is bad is there");
        let from_commit = committed.and_then(|it| it.value_of(name));
        taken.push(match from_commit {
            Some(_) => format!("{key} (from the last commit)"),
            None => format!("{key} (set to nothing)"),
        });
        document = document.with_field(key, &from_commit.unwrap_or_else(|| default_value(name)));
    }
}

fn default_value(name: &str) -> Value {
    match name {
        "status" => Value::from(ModuleStatus::Draft.wire_name()),
        "depends_on" | "tags" | "delegation_failures" => Value::Array(Vec::new()),
        "stage" => Value::Null,
        _ => Value::from(""),
    }
}

/// Every `"key": value` of a torn JSON text that is whole in itself. What lies inside a value is not looked at again.
fn salvaged_json(text: &str) -> Document {
    let mut document = Document::read(Syntax::Json, "{\n}\n").expect("an empty object can be read");
    let mut at = 0;
    while let Some(quote) = text[at..].find('"').map(|place| at + place) {
        let mut key = serde_json::Deserializer::from_str(&text[quote..]).into_iter::<String>();
        let Some(Ok(name)) = key.next() else {
            at = quote + 1;
            continue;
        };
        let after = quote + key.byte_offset();
        let rest = text[after..].trim_start();
        let Some(rest) = rest.strip_prefix(':') else {
            at = after;
            continue;
        };
        let start = text.len() - rest.len();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset();
                document = document.with_field(&name, &value);
            }
            Some(Err(_)) | None => at = start,
        }
    }
    document
}

/// The fields of torn front matter that stand whole; everything else goes below it, where a person finds it.
fn salvaged_front_matter(text: &str) -> Document {
    let mut fields = String::new();
    let mut below = String::new();
    let mut seen: Vec<String> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let alone = format!("---\n{line}\n---\n");
        let key = Document::read(Syntax::FrontMatter, &alone)
            .ok()
            .and_then(|it| it.fields().first().map(|field| field.key.clone()));
        match key {
            Some(key) if FIELDS.iter().any(|names| names.contains(&key.as_str())) && !seen.contains(&key) => {
                fields.push_str(line);
                fields.push('\n');
                seen.push(key);
            }
            Some(_) | None if line.trim_end() == "---" => {}
            Some(_) | None => {
                below.push_str(line);
                below.push('\n');
            }
        }
    }
    let text = format!("---\n{fields}---\n{below}");
    Document::read(Syntax::FrontMatter, &text)
        .expect("lines that can be read one by one can be read together")
}

fn render_repair_note(
    file: &str,
    errors: &[ModuleFormatError],
    origin: &RepairOrigin,
    copy: &str,
    now: Timestamp,
) -> String {
    let done = match origin {
        RepairOrigin::Fields(fields) => {
            format!("All fields stayed as they were but these: {}.", fields.join(", "))
        }
        RepairOrigin::Head => "The file was restored from the last commit.".to_owned(),
        RepairOrigin::Rebuilt(kept) if kept.is_empty() => {
            "Nothing in it could be read; it was built anew as a draft.".to_owned()
        }
        RepairOrigin::Rebuilt(kept) => {
            format!("It was built anew as a draft, with what could be read: {}.", kept.join(", "))
        }
    };
    let wrong: String = errors.iter().map(|error| format!("- {error}\n")).collect();
    format!(
        "# Recovery of `{file}`\n\n{}\n\nWhat was wrong:\n\n{wrong}\n{done}\nThe broken file is kept as `{copy}`.\n",
        format_timestamp(now)
    )
}
