//! A store whose files around its objects are damaged, as after a power cut in its first seconds.

use std::path::Path;

use landfall_host::git::{Store, WorkspacePool};

use crate::git_scene::{Scene, main_branch, snapshot};

fn empty(path: &Path) {
    std::fs::write(path, b"").expect("it can be emptied");
}

/// Opens the store again as the next engine does.
fn reopen(scene: &Scene) -> Store {
    let store = Store::open(&scene.git, &scene.temp.path().join("state/store.git"), &scene.repo);
    store.expect("a damaged frame is mended")
}

#[test]
fn a_store_with_a_damaged_frame_is_mended_and_keeps_its_objects() {
    type Damage = fn(&Path);
    let table: [(&str, Damage, &str); 13] = [
        ("empty HEAD", |dir| empty(&dir.join("HEAD")), "`HEAD` is empty"),
        ("no HEAD", |dir| std::fs::remove_file(dir.join("HEAD")).expect("removed"), "`HEAD` is missing"),
        (
            "zeroed HEAD",
            |dir| std::fs::write(dir.join("HEAD"), [0; 22]).expect("written"),
            "`HEAD` is damaged",
        ),
        ("empty config", |dir| empty(&dir.join("config")), "`config` is empty"),
        (
            "no config",
            |dir| std::fs::remove_file(dir.join("config")).expect("removed"),
            "`config` is missing",
        ),
        (
            "zeroed config",
            |dir| std::fs::write(dir.join("config"), [0; 90]).expect("written"),
            "`config` is damaged",
        ),
        (
            "no refs folder",
            |dir| std::fs::remove_dir_all(dir.join("refs")).expect("removed"),
            "the folder `refs` is missing",
        ),
        (
            "empty packed-refs",
            |dir| std::fs::write(dir.join("packed-refs"), b"").expect("written"),
            "`packed-refs` holds no",
        ),
        (
            "zeroed packed-refs",
            |dir| std::fs::write(dir.join("packed-refs"), [0; 60]).expect("written"),
            "`packed-refs` holds no",
        ),
        ("empty base", |dir| empty(&dir.join("refs/landfall/base")), "`refs/landfall/base` holds no"),
        (
            "zeroed base",
            |dir| std::fs::write(dir.join("refs/landfall/base"), [0; 41]).expect("written"),
            "`refs/landfall/base` holds no",
        ),
        (
            "no objects/info",
            |dir| std::fs::remove_dir_all(dir.join("objects/info")).expect("removed"),
            "the folder `objects/info` is missing",
        ),
        (
            "everything but objects",
            |dir| {
                for file in ["HEAD", "config"] {
                    empty(&dir.join(file));
                }
                for folder in ["refs", "info"] {
                    std::fs::remove_dir_all(dir.join(folder)).expect("removed");
                }
            },
            "the folder `info` is missing",
        ),
    ];
    for (story, damage, said) in table {
        let scene = Scene::new();
        let dir = scene.temp.path().join("state/store.git");
        assert_eq!(
            Store::find_damage(&dir).expect("readable"),
            Vec::<String>::new(),
            "{story}: whole before"
        );
        damage(&dir);
        let found = Store::find_damage(&dir).expect("readable");
        assert!(found.iter().any(|it| it.contains(said)), "{story}: {found:?}");
        let store = reopen(&scene);
        assert_eq!(store.repairs(), found, "{story}: what was found was mended");
        assert_eq!(Store::find_damage(&dir).expect("readable"), Vec::<String>::new(), "{story}: whole again");
        if store.read_base().expect("no ref is broken").is_none() {
            store.set_base(&scene.base, None).expect("its objects are still there");
        }
        assert_eq!(
            store.import_branch(&scene.repo, &main_branch()).expect("it can be written to"),
            scene.base,
            "{story}"
        );
        let pool =
            WorkspacePool::open(&store, &scene.temp.path().join("state/workspaces")).expect("the pool opens");
        let ws = pool.prepare_workspace("T1", &scene.base, "landfall/t1").expect("a workspace can be made");
        assert_eq!(snapshot(ws.path()), snapshot(&scene.root()), "{story}");
        assert!(store.run_fsck().expect("git runs").problems.is_empty(), "{story}");
    }
}
