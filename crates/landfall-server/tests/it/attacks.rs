//! Text that means harm, in every field of every answer, over every route. The numbers are those of the table of attacks: what
//! is asked with is in `door` (A1 to A3), `tokens` (A4), `socket` (A5) and `agents` (A6).

use std::io::Read as _;

use landfall_server::served_routes;

use crate::door::{ends, right};
use crate::samples::Samples;
use crate::support::{Answer, Place, until};

/// What of the answers may hold text as it was: never a page.
fn is_page(answer: &Answer) -> bool {
    answer.header("content-type").is_some_and(|it| it.starts_with("text/html"))
}

/// Every answer to whoever only looks, with this text in it.
fn answers(place: &Place, text: &str) -> Vec<(String, Answer)> {
    let mute = place.toy.speak(text);
    assert!(mute.is_empty(), "no text can be had from {mute:?}");
    let samples = Samples::new();
    let routes = served_routes();
    let reads = routes.iter().filter(|it| it.method == "GET" && ends(it));
    let ask = |path: &str, asking: crate::support::Asking| {
        let answer = asking.with("Authorization", &format!("Bearer {}", place.token)).send();
        assert!(answer.status < 500, "{path}: {answer:?}");
        (path.to_owned(), answer)
    };
    reads.map(|route| ask(&route.path, right(place, &samples, route))).collect()
}

#[test]
fn a24_text_of_others_is_text_in_every_answer() {
    let place = Place::new();
    let text = "\"'><script>CANARY</script><img src=x onerror=CANARY>{{CANARY}}";
    let mut shown = 0;
    for (path, answer) in answers(&place, text) {
        if !is_page(&answer) {
            let kind = answer.header("content-type").unwrap_or_default();
            let told =
                ["application/json", "application/problem+json", "text/plain", "text/css", "text/javascript"];
            let plain = told.iter().any(|it| kind.starts_with(it))
                || ["application/octet-stream", "application/openmetrics-text", "application/x-ndjson"]
                    .iter()
                    .any(|it| kind.starts_with(it));
            assert!(plain || answer.body.is_empty(), "{path} is {kind}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
            continue;
        }
        for tag in ["<script>CANARY", "<img src=x", "\"'>", "onerror=CANARY>"] {
            assert!(!answer.body.contains(tag), "{path}: {tag} in {}", around(&answer.body, tag));
        }
        shown += usize::from(answer.body.contains("CANARY"));
    }
    assert!(shown > 20, "it was to be seen on {shown} pages only");
    let mut led = 0;
    for (path, answer) in answers(&place, "javascript:CANARY()") {
        if is_page(&answer) {
            led += usize::from(answer.body.contains("javascript:CANARY"));
            for name in ["href", "src", "action", "formaction", "hx-get", "hx-post", "data-href"] {
                let link = format!("{name}=\"javascript:");
                assert!(!answer.body.contains(&link), "{path}: {}", around(&answer.body, &link));
            }
        }
    }
    assert!(led > 20, "it was to be seen on {led} pages only");
}

fn around(text: &str, what: &str) -> String {
    let at = text.find(what).unwrap_or(0);
    text.chars().skip(text[..at].chars().count().saturating_sub(120)).take(300).collect()
}

#[test]
fn a22_no_answer_of_any_route_holds_a_secret_that_is_known() {
    let place = Place::new();
    let secret = "sk-canary/0123+456789&<x>\"";
    *place.toy.secrets.lock().expect("no panic while it is held") = vec![secret.to_owned()];
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = "c2stY2FuYXJ5LzAxMjMrNDU2Nzg5Jjx4PiI=";
    let percent = "sk-canary%2F0123%2B456789%26%3Cx%3E%22";
    let text = format!("leak {secret} and {secret}, {hex}, {base64}, {percent}, Bearer {secret}");
    let mut shown = 0;
    for (path, answer) in answers(&place, &text) {
        // A title that is cut off on a drawing shows the beginning of what a person wrote into it; nothing shows all of it.
        for way in ["canary/0123+456789", "canary%2F0123%2B456789", &hex[..40], &base64[..30]] {
            assert!(!answer.body.contains(way), "{path}: {}", around(&answer.body, way));
        }
        if let Some(length) = answer.header("content-length") {
            assert_eq!(length, answer.body.len().to_string(), "{path}");
        }
        shown += usize::from(answer.body.contains("****"));
    }
    assert!(shown > 50, "it was hidden in {shown} answers only");
    let mut stream = place.owner("GET", "/api/v1/events?after=0").open();
    let mut told = Vec::new();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&told).contains("id: 2\n") {
        let read = stream.read(&mut part).expect("the stream goes on");
        told.extend_from_slice(&part[..read]);
    }
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("****") && !told.contains("canary"), "{told}");
}

/// What a terminal obeys, or what makes an eye see something else.
fn is_trick(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{61c}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

#[test]
fn a23_no_answer_but_a_file_to_keep_holds_what_a_terminal_obeys() {
    let place = Place::new();
    let text = "x\u{1b}]52;c;Y2FuYXJ5\u{7}\u{1b}]0;title\u{1b}\\\u{1b}P1q\u{1b}\\\u{1b}[2J\u{9b}31m\u{9d}0;t\u{9c}\
                over\rwritten\u{8}\u{7f}\u{202e}gnp.exe\u{2066}\u{200b}\u{feff}\u{e0041}";
    let mut shown = 0;
    for (path, answer) in answers(&place, text) {
        for (name, value) in &answer.headers {
            assert!(!value.contains(is_trick), "{path}: {name}");
        }
        if answer.header("content-disposition").is_some_and(|it| it.starts_with("attachment;")) {
            continue; // as it was written, for whoever keeps it
        }
        let found: Vec<char> = answer.body.chars().filter(|it| is_trick(*it)).collect();
        assert!(found.is_empty(), "{path}: {found:?} in {}", around(&answer.body, &found[0].to_string()));
        shown += usize::from(answer.body.contains("Y2FuYXJ5"));
    }
    assert!(shown > 50, "it was to be seen in {shown} answers only");
}

#[test]
fn a25_no_text_becomes_an_event_of_its_own() {
    let place = Place::new();
    let forged =
        "x\n\nid: 999\ndata: {\"seq\":999,\"kind\":\"landed\"}\n\n\r\rid: 998\revent: live\rdata: {}\r\n\r\n";
    place.toy.speak(forged);
    let mut stream = place.owner("GET", "/api/v1/events?after=0").open();
    let mut told = Vec::new();
    let mut part = [0; 4096];
    let ids = |told: &[u8]| -> Vec<String> {
        // As a browser reads it: each of the three line ends ends a line.
        let text = String::from_utf8_lossy(told).replace("\r\n", "\n").replace('\r', "\n");
        text.lines().filter_map(|line| line.strip_prefix("id: ").map(str::to_owned)).collect()
    };
    while ids(&told).len() < 2 {
        let read = stream.read(&mut part).expect("the stream goes on");
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&told));
        told.extend_from_slice(&part[..read]);
    }
    assert_eq!(ids(&told), ["1", "2"], "{}", String::from_utf8_lossy(&told));
    place.toy.write(1, None);
    while ids(&told).len() < 3 {
        let read = stream.read(&mut part).expect("the stream goes on");
        told.extend_from_slice(&part[..read]);
    }
    assert_eq!(ids(&told), ["1", "2", "3"]);
    // Nor does what is asked for become a line of an answer's head.
    for target in
        ["/tasks/T7%0d%0aSet-Cookie:%20a=b", "/nothing%0d%0aX: y", "/do/x%0d%0aLocation:%20//evil.example"]
    {
        let target = target.replace(' ', "%20");
        let answer = place.owner("GET", &target).send();
        assert_eq!((answer.header("set-cookie"), answer.header("x")), (None, None), "{target}: {answer:?}");
    }
}

/// Names that would like to be paths.
const NAMES: [&str; 22] = [
    "..",
    ".",
    "...",
    "../token",
    "../../../../etc/passwd",
    "/etc/passwd",
    "..\\token",
    "T7/../../token",
    "T7\0",
    "\0",
    "%2e%2e%2ftoken",
    "..;/token",
    "\u{ff0e}\u{ff0e}/token",
    "\u{2024}\u{2024}/token",
    "\u{202e}T7",
    "T7\u{200b}",
    "t7",
    "T007",
    "T-7",
    "T99999999999999999999",
    "~root",
    "CON",
];

#[test]
fn a7_no_name_in_the_address_of_any_route_leads_to_a_file() {
    let place = Place::new();
    let long = ["x".repeat(5_000), "../".repeat(1_000)];
    let names: Vec<&str> = NAMES.iter().copied().chain(long.iter().map(String::as_str)).collect();
    let routes = served_routes();
    let mut tried = 0;
    for route in routes.iter().filter(|it| it.path.contains('{') && ends(it)) {
        for name in &names {
            let raw = name.replace(['\0', '\u{202e}', '\u{200b}', ' '], "");
            let escaped: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
            for part in [escaped, raw].iter().filter(|it| it.is_ascii() && it.len() < 20_000) {
                let (from, to) =
                    (route.path.find('{').expect("a field"), route.path.find('}').expect("its end"));
                let target =
                    crate::samples::fill(&format!("{}{part}{}", &route.path[..from], &route.path[to + 1..]));
                let mut asking = place.owner(route.method, &target);
                if route.method != "GET" {
                    let api = route.path.starts_with("/api/");
                    asking = if api { asking.json("{}") } else { asking.form("") };
                    asking = asking.with("Origin", &format!("http://{}", place.host()));
                }
                let answer = asking.send();
                tried += 1;
                let what = format!("{} {target:.200}: {answer:?}", route.method);
                assert!(answer.status < 500, "{what}");
                assert!(!answer.body.contains(&place.token) && !answer.body.contains("root:x:"), "{what}");
                if let Some(to) = answer.header("location") {
                    assert!(to.starts_with('/') && !to.starts_with("//") && !to.contains('\\'), "{what}");
                }
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
    until("the server goes on", || place.owner("GET", "/api/v1/hello").send().status == 200);
}
