//! Users and what they may do, as all threads share them.
//!
//! It knows who there is, and what was denied. It knows no command: whether one is allowed is asked of a user.

mod denials;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use snugly_acl::Users;

pub(crate) use denials::{Denial, Denials, Place, Reason};

/// All users, and the log of what was denied.
pub(crate) struct Accounts {
    users: RwLock<Arc<Users>>,
    /// Number of changes, by which connections see that theirs may be another one.
    version: AtomicU64,
    /// Held from where a change reads the users until they have changed.
    changes: Mutex<()>,
    pub(crate) denials: Denials,
}

impl Accounts {
    pub(crate) fn new(users: Users) -> Accounts {
        Accounts {
            users: RwLock::new(Arc::new(users)),
            version: AtomicU64::new(0),
            changes: Mutex::default(),
            denials: Denials::default(),
        }
    }

    pub(crate) fn users(&self) -> Arc<Users> {
        self.users.read().clone()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes users, while nobody else does; if `change` fails, nothing has changed.
    pub(crate) fn change<R, E>(&self, change: impl FnOnce(&mut Users) -> Result<R, E>) -> Result<R, E> {
        let _alone = self.changes.lock();
        let mut users = Users::clone(&self.users());
        let changed = change(&mut users)?;
        *self.users.write() = Arc::new(users);
        self.version.fetch_add(1, Ordering::Release);
        Ok(changed)
    }

    /// Gives the user `default` this password, or if it is empty none at all.
    pub(crate) fn set_default_password(&self, password: &str) {
        let set = |users: &mut Users| {
            let mut user = snugly_acl::User::clone(users.default_user());
            user.set_password(password.as_bytes());
            users.put(user);
            Ok::<(), std::convert::Infallible>(())
        };
        let Ok(()) = self.change(set);
    }
}
