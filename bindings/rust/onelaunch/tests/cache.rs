//! The cache of kernels, in a folder of this test's own: one test, because where the cache is, is the process's environment.

use onelaunch::*;
use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, SystemTime};

#[test]
fn the_cache_of_kernels() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    std::env::set_var("ONELAUNCH_CACHE", "off");
    assert_eq!((cache::folder(), cache::list().unwrap(), cache::clear().unwrap()), (None, vec![], cache::Removed::default()));

    std::env::set_var("ONELAUNCH_CACHE", &folder);
    assert_eq!(cache::folder().as_deref(), Some(&*folder));
    assert_eq!(cache::list().unwrap(), []);
    let n_kernels = match Device::cuda(0) {
        Ok(gpu) => {
            for name in ["first", "second"] {
                gpu.compile(name, [DType::Float32], |_, [x]| [if name == "first" { x.exp() } else { x.log() }]).unwrap();
            }
            2
        }
        Err(_) => {
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
            0
        }
    };
    for i in 0..2 {
        fs::write(folder.join(format!("{i:032x}.kernel")), "no kernel").unwrap();
    }
    let entries = cache::list().unwrap();
    assert_eq!(entries.len(), n_kernels + 2);
    assert_eq!(entries.iter().filter(|entry| entry.is_sound).count(), n_kernels);
    for entry in &entries {
        let age = SystemTime::now().duration_since(entry.last_used).unwrap_or_default();
        assert!(age < Duration::from_secs(3600) && entry.n_bytes > 0 && entry.file.ends_with(".kernel"), "{entry:?}");
        assert!(entry.is_sound == entry.architecture.starts_with("sm_"), "{entry:?}");
        assert!(entry.is_sound == (entry.library_version == version()), "{entry:?}");
    }

    let mut n_visits = 0;
    cache::visit(|_| {
        n_visits += 1;
        false
    })
    .unwrap();
    assert_eq!(n_visits, 1);
    let panic = catch_unwind(AssertUnwindSafe(|| cache::visit(|_| panic!("while visiting"))));
    assert_eq!(*panic.unwrap_err().downcast_ref::<&str>().unwrap(), "while visiting");

    let removed = cache::clear().unwrap();
    assert_eq!((removed.n_files, removed.n_bytes), (entries.len() as u64, entries.iter().map(|entry| entry.n_bytes).sum()));
    assert_eq!(cache::list().unwrap(), []);
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "no folder").unwrap();
    assert_eq!(cache::list().unwrap_err().status(), Status::Device);
    fs::remove_file(&folder).unwrap();
}
