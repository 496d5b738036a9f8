//! The files of the pages: one style sheet, one script, the icon, the manifest. They are in the binary. `build.rs` makes the first
//! two of the files in `assets/`, compresses them, and puts a hash into their names: browsers keep them for good.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, header};

use crate::answer::{self, HttpResponse};
use crate::router::{Guard, RouteTable};

/// The style sheet, by the name that pages use.
pub(crate) const STYLE: &str = env!("LANDFALL_STYLE");
/// The script, by the name that pages use.
pub(crate) const SCRIPT: &str = env!("LANDFALL_SCRIPT");

/// One file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    /// The same compressed, where that is worth it. Its name has a hash then.
    packed: Option<&'static [u8]>,
}

const ASSETS: &[Asset] = &[
    Asset {
        name: STYLE,
        kind: "text/css; charset=utf-8",
        text: include_str!(concat!(env!("OUT_DIR"), "/app.css")),
        packed: Some(include_bytes!(concat!(env!("OUT_DIR"), "/app.css.gz"))),
    },
    Asset {
        name: SCRIPT,
        kind: "text/javascript; charset=utf-8",
        text: include_str!(concat!(env!("OUT_DIR"), "/app.js")),
        packed: Some(include_bytes!(concat!(env!("OUT_DIR"), "/app.js.gz"))),
    },
    Asset { name: "icon.svg", kind: "image/svg+xml", text: include_str!("../assets/icon.svg"), packed: None },
    Asset {
        name: "manifest.webmanifest",
        kind: "application/manifest+json",
        text: include_str!("../assets/manifest.webmanifest"),
        packed: None,
    },
];

pub(crate) fn routes(routes: &mut RouteTable) {
    routes.get("/assets/{name}", Guard::Open, serve_asset);
}

async fn serve_asset(Path(name): Path<String>, headers: HeaderMap) -> HttpResponse {
    let Some(asset) = ASSETS.iter().find(|it| it.name == name) else {
        return answer::of(404, "text/plain; charset=utf-8", "no such file");
    };
    send(asset, &headers)
}

fn send(asset: &'static Asset, asked: &HeaderMap) -> HttpResponse {
    if let Some(packed) = asset.packed {
        let accepts = asked.get(header::ACCEPT_ENCODING).and_then(|it| it.to_str().ok()).unwrap_or_default();
        let is_packed = accepts.split(',').any(|word| word.trim().split(';').next() == Some("gzip"));
        let mut answer = match is_packed {
            true => answer::of(200, asset.kind, packed),
            false => answer::of(200, asset.kind, asset.text),
        };
        let headers = answer.headers_mut();
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        headers
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
        return answer;
    }
    let tag = format!("\"{}\"", &blake3::hash(asset.text.as_bytes()).to_hex()[..16]);
    let same = asked.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let mut answer =
        if same { answer::of(304, asset.kind, "") } else { answer::of(200, asset.kind, asset.text) };
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(encoding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(encoding))])
    }

    #[test]
    fn script_and_style_are_kept_for_good_and_sent_compressed() {
        for asset in &ASSETS[..2] {
            let packed = send(asset, &asked("br, gzip;q=0.8"));
            assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
            assert!(
                packed.headers()[header::CACHE_CONTROL].to_str().is_ok_and(|it| it.contains("immutable"))
            );
            assert!(!send(asset, &asked("")).headers().contains_key(header::CONTENT_ENCODING));
        }
    }

    #[test]
    fn the_first_visit_loads_little() {
        const LOAD_MAX: usize = 50_000; // the page itself comes on top; both together stay below 60 kB
        let packed: usize =
            ASSETS.iter().map(|asset| asset.packed.map_or(asset.text.len(), <[u8]>::len)).sum();
        assert!(packed < LOAD_MAX, "{packed} bytes");
    }

    #[test]
    fn the_script_has_no_module_left_in_it() {
        let script = ASSETS[1].text;
        let left: Vec<&str> = script
            .lines()
            .filter(|line| line.starts_with("import ") || line.starts_with("export "))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(script.contains("const m_keys = "), "the modules are there");
    }
}
