//! The home folder as the sandbox shows it: hidden, but for what builds need. Lists of names below it.

use std::path::{Path, PathBuf};

/// Where people and programs usually keep secrets. Hidden wherever they lie, also below what [`TOOLS`] opens. The logins of
/// agents come on top; the agents name them.
pub const SECRETS: [&str; 43] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".git-credentials",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/op",
    ".config/sops",
    ".config/rclone",
    ".config/doctl",
    ".fly",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".cache/huggingface/token",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
];

/// Secrets that tools keep below what [`TOOLS`] opens, besides the usual places.
pub const SECRETS_OF_TOOLS: [&str; 9] = [
    ".cache/huggingface/stored_tokens",
    ".gradle/.gradle-enterprise",
    ".gradle/enterprise",
    ".julia/servers",
    ".m2/settings-security.xml",
    ".pub-cache/credentials.json",
    ".sbt/.credentials",
    ".sbt/credentials",
    ".stack/upload",
];

/// Variables that move a place of [`SECRETS`] or of an agent's login, each with what it moves: the usual place itself, or all
/// that usually lies below it. A variable without a usual place names a secret by itself.
pub const MOVED_SECRETS: [(&str, &str); 48] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_CACHE_HOME", ".cache"),
    ("CARGO_HOME", ".cargo"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("HF_HOME", ".cache/huggingface"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CODEX_HOME", ".codex"),
    ("GNUPGHOME", ".gnupg"),
    ("AZURE_CONFIG_DIR", ".azure"),
    ("CLOUDSDK_CONFIG", ".config/gcloud"),
    ("GH_CONFIG_DIR", ".config/gh"),
    ("GLAB_CONFIG_DIR", ".config/glab-cli"),
    ("DOCKER_CONFIG", ".docker"),
    ("PASSWORD_STORE_DIR", ".password-store"),
    ("NETRC", ".netrc"),
    ("NPM_CONFIG_USERCONFIG", ".npmrc"),
    ("npm_config_userconfig", ".npmrc"),
    ("PGPASSFILE", ".pgpass"),
    ("HISTFILE", ".bash_history"),
    ("KUBECONFIG", ""),
    ("AWS_SHARED_CREDENTIALS_FILE", ""),
    ("AWS_CONFIG_FILE", ""),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", ""),
    ("GOOGLE_APPLICATION_CREDENTIALS", ""),
    ("HF_TOKEN_PATH", ""),
    ("RCLONE_CONFIG", ""),
    ("SOPS_AGE_KEY_FILE", ""),
    ("TF_CLI_CONFIG_FILE", ""),
    ("PIP_CONFIG_FILE", ""),
    ("NPM_CONFIG_GLOBALCONFIG", ""),
    ("npm_config_globalconfig", ""),
    ("UV_CONFIG_FILE", ""),
    ("UV_CREDENTIALS_DIR", ""),
    ("BOTO_CONFIG", ""),
    ("KUBE_CONFIG_PATH", ""),
    ("TALOSCONFIG", ""),
    ("HELM_REGISTRY_CONFIG", ""),
    ("DOCKER_CERT_PATH", ""),
    ("XAUTHORITY", ""),
    ("PGSERVICEFILE", ""),
    ("MYSQL_TEST_LOGIN_FILE", ""),
    ("OCI_CLI_CONFIG_FILE", ""),
    ("SCW_CONFIG_PATH", ""),
    ("HCLOUD_CONFIG", ""),
    ("DATABRICKS_CONFIG_FILE", ""),
    ("KRB5_KTNAME", ""),
    ("OP_CONFIG_DIR", ".config/op"),
];

/// Files below the home folder in which people name secrets that are elsewhere.
pub const SETTINGS_WITH_SECRETS: [&str; 10] = [
    ".gitconfig",
    ".config/git/config",
    ".ssh/config",
    ".aws/config",
    ".kube/config",
    ".npmrc",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".curlrc",
    ".my.cnf",
];

/// The files that a text of settings names as secrets, as they are written: keys, tokens, cookies, and the file of git's
/// `credential.helper = store`. Only full paths and those in the home folder count.
#[must_use]
pub fn secrets_named_in(text: &str) -> Vec<&str> {
    const KEYS: [&str; 15] = [
        "identityfile",
        "certificatefile",
        "cookiefile",
        "sslkey",
        "signingkey",
        "tokenfile",
        "client-key",
        "client-cert",
        "keyfile",
        "key",
        "ssl-key",
        "cookie",
        "netrc-file",
        "web_identity_token_file",
        "helper",
    ];
    let named = text.lines().filter_map(|line| {
        let line = line.trim();
        let (key, value) = line.split_at(line.find(['=', ':', ' ', '\t'])?);
        // `//registry/:keyfile = x` of npm, `--cookie x` of curl
        let key = key.rsplit(':').next()?.trim_start_matches('-').to_ascii_lowercase();
        let value = value.trim_start_matches(['=', ':', ' ', '\t']);
        let value = match value.strip_prefix(':').unwrap_or(value).split_once("keyfile") {
            Some((_, rest)) if line.starts_with("//") => rest.trim_start_matches(['=', ' ', '\t']),
            _ if line.starts_with("//") => return None,
            _ if KEYS.contains(&key.as_str()) => value,
            _ => return None,
        };
        // `store --file ~/x`, `store --file=~/x`
        let value = if key == "helper" {
            value.split_once("--file")?.1.trim_start_matches(['=', ' '])
        } else {
            value
        };
        let value = value.trim_matches(['"', '\'', ' ']);
        (value.starts_with('/') || value.starts_with("~/")).then_some(value)
    });
    named.collect()
}

/// Whether a variable of this name is likely to name a file with what a person typed.
#[must_use]
pub fn is_history(variable: &str) -> bool {
    ["HISTFILE", "_HISTORY"].iter().any(|end| variable.ends_with(end))
}

/// What agents and checks can read: toolchains, what package managers have downloaded, and the settings of git.
pub const TOOLS: [&str; 82] = [
    ".gitconfig",
    ".config/git",
    ".config/mise",
    "bin",
    "go",
    "miniconda3",
    "miniforge3",
    "anaconda3",
    ".asdf",
    ".bun",
    ".cabal",
    ".cargo",
    ".conda",
    ".deno",
    ".dotnet",
    ".elan",
    ".fnm",
    ".foundry/bin",
    ".gem",
    ".ghcup",
    ".goenv",
    ".gradle",
    ".gvm",
    ".jenv",
    ".julia",
    ".juliaup",
    ".linuxbrew",
    ".m2",
    ".mix",
    ".nix-profile",
    ".nodenv",
    ".npm",
    ".npm-global",
    ".nuget/packages",
    ".nvm",
    ".opam",
    ".pub-cache",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sbt",
    ".sdkman",
    ".stack",
    ".volta",
    ".yarn",
    ".zig",
    ".local/bin",
    ".local/lib",
    ".local/state/nix",
    ".local/share/fnm",
    ".local/share/gem",
    ".local/share/mise",
    ".local/share/nvm",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/pypoetry",
    ".local/share/uv",
    ".local/share/virtualenv",
    ".local/share/virtualenvs",
    ".cache/bazel",
    ".cache/bazelisk",
    ".cache/ccache",
    ".cache/composer",
    ".cache/coursier",
    ".cache/Cypress",
    ".cache/deno",
    ".cache/electron",
    ".cache/go-build",
    ".cache/huggingface",
    ".cache/mise",
    ".cache/ms-playwright",
    ".cache/node",
    ".cache/pip",
    ".cache/pnpm",
    ".cache/pre-commit",
    ".cache/puppeteer",
    ".cache/pypoetry",
    ".cache/sccache",
    ".cache/torch",
    ".cache/uv",
    ".cache/yarn",
];

/// The secrets that a variable of this value moves, given their usual places below the home folder. Devices and what programs
/// cannot do without are no secrets: `KUBECONFIG=/dev/null` is usual.
#[must_use]
pub fn moved_secrets<'a>(usual: &str, folder: &Path, secrets: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    const NEEDED: [&str; 8] = ["/dev", "/proc", "/sys", "/bin", "/sbin", "/lib", "/lib64", "/usr/bin"];
    let is_needed = NEEDED.iter().any(|needed| folder.starts_with(needed));
    // A folder at the root holds more than a secret.
    let is_root = folder.parent().is_none();
    if !folder.is_absolute() || is_needed || is_root {
        return Vec::new();
    }
    if usual.is_empty() {
        let is_shared = folder.parent().and_then(Path::parent).is_none();
        return if is_shared { Vec::new() } else { vec![folder.to_owned()] };
    }
    let rests = secrets.filter_map(|secret| Path::new(secret).strip_prefix(usual).ok());
    rests
        .filter(|rest| !rest.as_os_str().is_empty() || folder.parent().and_then(Path::parent).is_some())
        .map(|rest| if rest.as_os_str().is_empty() { folder.to_owned() } else { folder.join(rest) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_opened_and_no_name_is_listed_twice() {
        for secret in SECRETS {
            assert!(!TOOLS.iter().any(|tool| Path::new(tool).starts_with(secret)), "{secret}");
        }
        for secret in SECRETS_OF_TOOLS {
            assert!(
                TOOLS.iter().any(|tool| Path::new(secret).starts_with(tool)),
                "{secret} is hidden anyway"
            );
        }
        let mut names: Vec<&str> = SECRETS.into_iter().chain(SECRETS_OF_TOOLS).chain(TOOLS).collect();
        names.sort_unstable();
        let many = names.len();
        names.dedup();
        assert_eq!(names.len(), many);
    }

    #[test]
    fn secrets_are_found_in_the_settings_that_name_them() {
        let check = |text: &str, expected: &[&str]| assert_eq!(secrets_named_in(text), expected, "{text}");
        check("[credential]\n\thelper = store --file /srv/git-credentials\n", &["/srv/git-credentials"]);
        check(
            "[credential \"https://a.example\"]\n helper = \"store --file=~/work/tokens\"\n",
            &["~/work/tokens"],
        );
        check("[credential]\nhelper = cache\n[user]\nsigningkey = ABCDEF\n", &[]);
        check("[http]\n\tcookieFile = /srv/cookies\n\tsslCAInfo = /etc/ca.pem\n", &["/srv/cookies"]);
        check("Host *\n  IdentityFile ~/keys/work\n  identityfile=/srv/key\n", &["~/keys/work", "/srv/key"]);
        check(
            "users:\n- name: a\n  user:\n    tokenFile: /srv/token\n    client-key: /srv/k.pem\n",
            &["/srv/token", "/srv/k.pem"],
        );
        check("web_identity_token_file = /srv/aws\nregion = x\n", &["/srv/aws"]);
        check(
            "//registry.example/:keyfile=/srv/npm.pem\n//registry.example/:_authToken=x\n",
            &["/srv/npm.pem"],
        );
        check("--cookie /srv/jar\nkey = \"/srv/k\"\nkey = relative\n", &["/srv/jar", "/srv/k"]);
        check("", &[]);
    }

    #[test]
    fn a_variable_moves_the_secrets_of_its_usual_place() {
        let moved = |usual: &str, folder: &str| moved_secrets(usual, Path::new(folder), SECRETS.into_iter());
        let cargo = ["/opt/cargo/credentials.toml", "/opt/cargo/credentials"].map(PathBuf::from);
        assert_eq!(moved(".cargo", "/opt/cargo"), cargo);
        assert_eq!(moved(".netrc", "/etc/secret/netrc"), [PathBuf::from("/etc/secret/netrc")]);
        assert_eq!(moved("", "/etc/key.json"), [PathBuf::from("/etc/key.json")]);
        assert!(moved(".config", "/cfg").contains(&PathBuf::from("/cfg/gh")));
        for nothing in ["", "x", "/", "/dev/null", "/proc/self/fd/3", "/etc"] {
            assert_eq!(moved("", nothing), [] as [PathBuf; 0], "{nothing}");
            assert_eq!(moved(".gnupg", nothing), [] as [PathBuf; 0], "{nothing}");
        }
        for (variable, usual) in MOVED_SECRETS {
            let is_known = usual.is_empty()
                || [".claude", ".codex"].contains(&usual) // logins of agents
                || SECRETS.iter().any(|secret| Path::new(secret).starts_with(usual));
            assert!(is_known, "{variable}");
        }
    }
}
