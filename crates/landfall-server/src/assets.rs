//! The files of the pages: style, scripts, the icon. They are in the binary, and named by what is in them.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, header};

use crate::answer::{self, Answer};
use crate::router::{Guard, Routes};

/// One file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

macro_rules! assets {
    ($($name:literal is $kind:literal;)*) => {
        &[$(Asset { name: $name, kind: $kind, text: include_str!(concat!("../assets/", $name)) }),*]
    };
}

const ASSETS: &[Asset] = assets! {
    "style.css" is "text/css; charset=utf-8";
    "backlog.js" is "text/javascript; charset=utf-8";
    "task.css" is "text/css; charset=utf-8";
    "more.css" is "text/css; charset=utf-8";
    "log.js" is "text/javascript; charset=utf-8";
    "diff.js" is "text/javascript; charset=utf-8";
    "theme.js" is "text/javascript; charset=utf-8";
    "htmx.js" is "text/javascript; charset=utf-8";
    "idiomorph.js" is "text/javascript; charset=utf-8";
    "landfall.js" is "text/javascript; charset=utf-8";
    "morph.js" is "text/javascript; charset=utf-8";
    "events.js" is "text/javascript; charset=utf-8";
    "toasts.js" is "text/javascript; charset=utf-8";
    "confirm.js" is "text/javascript; charset=utf-8";
    "times.js" is "text/javascript; charset=utf-8";
    "keys.js" is "text/javascript; charset=utf-8";
    "palette.js" is "text/javascript; charset=utf-8";
    "theme-switch.js" is "text/javascript; charset=utf-8";
    "notify.js" is "text/javascript; charset=utf-8";
    "icon.svg" is "image/svg+xml";
};

/// The sheets of style, in the order they are read.
pub(crate) fn sheets() -> impl Iterator<Item = &'static str> {
    ASSETS.iter().map(|it| it.name).filter(|name| name.ends_with(".css"))
}

pub(crate) fn routes(routes: &mut Routes) {
    routes.get("/assets/{name}", Guard::Open, asset);
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Answer {
    let Some(asset) = ASSETS.iter().find(|it| it.name == name) else {
        return answer::of(404, "text/plain; charset=utf-8", "no such file");
    };
    let tag = format!("\"{}\"", &blake3::hash(asset.text.as_bytes()).to_hex()[..16]);
    let same = headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let mut answer =
        if same { answer::of(304, asset.kind, "") } else { answer::of(200, asset.kind, asset.text) };
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    answer
}
