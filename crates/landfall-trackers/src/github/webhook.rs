//! What GitHub sends by itself. A delivery is a nudge: it says where to look, and what is there is then read. So a delivery that
//! is lost costs time, and one that comes twice costs nothing.

use std::collections::{HashSet, VecDeque};

use ring::hmac;
use serde::Deserialize;
use thiserror::Error;

use crate::tracker::{CommentThread, CommitSha, IssueNumber, PrNumber, TrackerBranchName, escape_beginning};

/// The headers of a delivery that matter.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// `X-GitHub-Event`.
    pub event: &'a str,
    /// `X-GitHub-Delivery`.
    pub id: &'a str,
    /// `X-Hub-Signature-256`.
    pub signature: &'a str,
    /// The body, as it came.
    pub body: &'a [u8],
}

impl<'a> Delivery<'a> {
    /// The delivery in a request. `header` looks a header up by its name in lower case; one that is missing is empty, and what is not signed is
    /// not believed.
    pub fn from_request(header: impl Fn(&str) -> Option<&'a str>, body: &'a [u8]) -> Self {
        let header = |name| header(name).unwrap_or_default();
        Self {
            event: header("x-github-event"),
            id: header("x-github-delivery"),
            signature: header("x-hub-signature-256"),
            body,
        }
    }
}

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookSubject {
    /// At an issue or a pull request.
    Thread(CommentThread),
    /// At the checks of a commit.
    Checks(CommitSha),
    /// At a branch: something was pushed.
    Branch(TrackerBranchName),
    /// At everything: the repository was renamed, moved, or its default branch was.
    Repository,
    /// Nowhere: it is a greeting, or of a kind that means nothing to us.
    Nothing,
}

/// Why a delivery is not believed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DeliveryError {
    /// It is not signed with our secret.
    #[error("the delivery is not signed with the secret of this webhook")]
    Signature,
    /// It is about another repository.
    #[error("the delivery is about `{0}`")]
    Repository(String),
    /// It is signed and cannot be read.
    #[error("the delivery cannot be read: {0}")]
    Malformed(String),
}

/// More than GitHub sends at once.
const BODY_BYTES_MAX: usize = 25 << 20;

/// What a delivery says, if it is GitHub's, about this repository.
pub fn parse_delivery(
    secret: &[u8],
    repository: &str,
    delivery: Delivery<'_>,
) -> Result<WebhookSubject, DeliveryError> {
    verify_signature(secret, delivery.signature, delivery.body)?;
    let malformed = |why: String| DeliveryError::Malformed(escape_beginning(&why, 300));
    if delivery.body.len() > BODY_BYTES_MAX {
        return Err(malformed("it is too long".to_owned()));
    }
    let body: WebhookPayload =
        serde_json::from_slice(delivery.body).map_err(|error| malformed(error.to_string()))?;
    if let Some(about) = &body.repository
        && !about.full_name.eq_ignore_ascii_case(repository)
        && delivery.event != "repository"
    {
        return Err(DeliveryError::Repository(escape_beginning(&about.full_name, 100)));
    }
    let missing =
        |what: &str| malformed(format!("`{what}` is missing in `{}`", escape_beginning(delivery.event, 40)));
    let commit = |text: &str| {
        CommitSha::new(text).map(WebhookSubject::Checks).map_err(|error| malformed(error.to_string()))
    };
    match delivery.event {
        "issues" | "issue_comment" | "sub_issues" | "issue_dependencies" => {
            let issue =
                body.issue.or(body.parent_issue).or(body.blocked_issue).ok_or_else(|| missing("issue"))?;
            Ok(WebhookSubject::Thread(
                issue.comment_thread().ok_or_else(|| malformed("a number is 0".to_owned()))?,
            ))
        }
        "pull_request"
        | "pull_request_review"
        | "pull_request_review_comment"
        | "pull_request_review_thread" => {
            let number = body.pull_request.ok_or_else(|| missing("pull_request"))?.number;
            let number = PrNumber::new(number).ok_or_else(|| malformed("a number is 0".to_owned()))?;
            Ok(WebhookSubject::Thread(number.into()))
        }
        "check_run" => commit(&body.check_run.ok_or_else(|| missing("check_run"))?.head_sha),
        "check_suite" => commit(&body.check_suite.ok_or_else(|| missing("check_suite"))?.head_sha),
        "workflow_run" => commit(&body.workflow_run.ok_or_else(|| missing("workflow_run"))?.head_sha),
        "workflow_job" => commit(&body.workflow_job.ok_or_else(|| missing("workflow_job"))?.head_sha),
        "status" => commit(&body.sha.ok_or_else(|| missing("sha"))?),
        "push" => {
            let name = body.name.ok_or_else(|| missing("ref"))?;
            // Tags are pushed, too; and a branch we would not touch is none for us.
            let branch = name.strip_prefix("refs/heads/").and_then(|name| TrackerBranchName::new(name).ok());
            Ok(branch.map_or(WebhookSubject::Nothing, WebhookSubject::Branch))
        }
        "repository" => Ok(WebhookSubject::Repository),
        _ => Ok(WebhookSubject::Nothing),
    }
}

/// Whether a body was signed with the secret.
pub fn verify_signature(secret: &[u8], signature: &str, body: &[u8]) -> Result<(), DeliveryError> {
    // Without a secret anybody could sign.
    let digits = signature.strip_prefix("sha256=").filter(|_| !secret.is_empty());
    let bytes = digits.and_then(from_hex).ok_or(DeliveryError::Signature)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::verify(&key, body, &bytes).map_err(|_| DeliveryError::Signature) // in constant time
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|it| u8::try_from(it).ok());
    digits.chunks_exact(2).map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?)).collect()
}

#[derive(Deserialize)]
struct WebhookPayload {
    repository: Option<WebhookRepository>,
    issue: Option<WebhookIssue>,
    parent_issue: Option<WebhookIssue>,
    blocked_issue: Option<WebhookIssue>,
    pull_request: Option<WebhookIssue>,
    check_run: Option<WebhookCommit>,
    check_suite: Option<WebhookCommit>,
    workflow_run: Option<WebhookCommit>,
    workflow_job: Option<WebhookCommit>,
    sha: Option<String>,
    #[serde(rename = "ref")]
    name: Option<String>,
}

#[derive(Deserialize)]
struct WebhookRepository {
    full_name: String,
}

#[derive(Deserialize)]
struct WebhookIssue {
    number: u64,
    pull_request: Option<serde::de::IgnoredAny>,
}

impl WebhookIssue {
    fn comment_thread(&self) -> Option<CommentThread> {
        match self.pull_request {
            Some(_) => PrNumber::new(self.number).map(CommentThread::PullRequest),
            None => IssueNumber::new(self.number).map(CommentThread::Issue),
        }
    }
}

#[derive(Deserialize)]
struct WebhookCommit {
    head_sha: String,
}

/// The deliveries heard of. GitHub sends one again when it is not sure that it arrived, and a person may ask it to.
#[derive(Debug, Default)]
pub struct Deliveries {
    known: HashSet<String>,
    order: VecDeque<String>,
}

/// A day of a busy repository.
const DELIVERIES_MAX: usize = 10_000;

impl Deliveries {
    /// Whether this one is new; it is not when asked again.
    pub fn is_new(&mut self, id: &str) -> bool {
        let id: String = id.chars().take(100).collect(); // they are 36 long
        if !self.known.insert(id.clone()) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > DELIVERIES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From GitHub's own documentation of webhooks: secret, payload and signature.
    const KNOWN: (&[u8], &[u8], &str) = (
        b"It's a Secret to Everybody",
        b"Hello, World!",
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    );

    fn sign(secret: &[u8], body: &[u8]) -> String {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), body);
        let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256={digits}")
    }

    fn hear(event: &str, body: &str) -> Result<WebhookSubject, DeliveryError> {
        let signature = sign(b"secret", body.as_bytes());
        parse_delivery(
            b"secret",
            "o/r",
            Delivery { event, id: "1", signature: &signature, body: body.as_bytes() },
        )
    }

    #[test]
    fn only_who_knows_the_secret_is_heard() {
        let (secret, body, signature) = KNOWN;
        assert_eq!(verify_signature(secret, signature, body), Ok(()));
        assert_eq!(verify_signature(secret, signature, b"Hello, World?"), Err(DeliveryError::Signature));
        for wrong in ["", "sha256=", "sha1=abc", &signature[7..], &format!("{signature}00"), "sha256=zz"] {
            assert_eq!(verify_signature(secret, wrong, body), Err(DeliveryError::Signature), "{wrong}");
        }
        // A webhook without a secret would be open to all.
        assert_eq!(verify_signature(b"", &sign(b"", body), body), Err(DeliveryError::Signature));
    }

    #[test]
    fn a_delivery_says_where_to_look() {
        let sha = "a".repeat(40);
        let issue =
            |number| WebhookSubject::Thread(CommentThread::Issue(IssueNumber::new(number).expect("not 0")));
        let pull = |number| {
            WebhookSubject::Thread(CommentThread::PullRequest(PrNumber::new(number).expect("not 0")))
        };
        let about = r#""repository":{"full_name":"O/R"}"#;
        let heard = [
            ("issues", format!(r#"{{"action":"labeled","issue":{{"number":7}},{about}}}"#), issue(7)),
            ("issue_comment", format!(r#"{{"issue":{{"number":8,"pull_request":{{}}}},{about}}}"#), pull(8)),
            ("pull_request_review", format!(r#"{{"pull_request":{{"number":9}},{about}}}"#), pull(9)),
            ("sub_issues", format!(r#"{{"parent_issue":{{"number":3}},{about}}}"#), issue(3)),
            (
                "check_run",
                format!(r#"{{"check_run":{{"head_sha":"{sha}"}},{about}}}"#),
                WebhookSubject::Checks(CommitSha::new(&sha).expect("a commit")),
            ),
            (
                "push",
                format!(r#"{{"ref":"refs/heads/a/b",{about}}}"#),
                WebhookSubject::Branch(TrackerBranchName::new("a/b").expect("one")),
            ),
            ("push", format!(r#"{{"ref":"refs/tags/v1",{about}}}"#), WebhookSubject::Nothing),
            ("push", format!(r#"{{"ref":"refs/heads/--upload-pack=x",{about}}}"#), WebhookSubject::Nothing),
            (
                "repository",
                r#"{"action":"renamed","repository":{"full_name":"o/new"}}"#.to_owned(),
                WebhookSubject::Repository,
            ),
            ("ping", r#"{"zen":"x"}"#.to_owned(), WebhookSubject::Nothing),
            ("star", format!("{{{about}}}"), WebhookSubject::Nothing),
        ];
        for (event, body, nudge) in heard {
            assert_eq!(hear(event, &body), Ok(nudge), "{event} {body}");
        }
        assert_eq!(
            hear("issues", r#"{"issue":{"number":7},"repository":{"full_name":"x/y"}}"#),
            Err(DeliveryError::Repository("x/y".to_owned()))
        );
        for (event, body) in [
            ("issues", "{}"),
            ("issues", "["),
            ("status", r#"{"sha":"--x"}"#),
            ("issues", r#"{"issue":{"number":0}}"#),
        ] {
            assert!(matches!(hear(event, body), Err(DeliveryError::Malformed(_))), "{event} {body}");
        }
    }

    #[test]
    fn a_delivery_that_comes_twice_is_new_once() {
        let mut deliveries = Deliveries::default();
        assert!(deliveries.is_new("a") && !deliveries.is_new("a") && deliveries.is_new("b"));
        for index in 0..DELIVERIES_MAX {
            deliveries.is_new(&index.to_string());
        }
        assert_eq!((deliveries.known.len(), deliveries.order.len()), (DELIVERIES_MAX, DELIVERIES_MAX));
    }
}
