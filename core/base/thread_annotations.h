#pragma once

// Names for clang's thread-safety attributes: which lock guards a member, and which locks a
// function expects, takes or releases. `./dev lint` compiles with clang's -Wthread-safety and so
// finds an access without its lock. Other compilers see nothing. The classes of core/base/mutex.h,
// SharedMutex and SpinLock have the annotations of a lock; std::mutex has none.

#ifdef __clang__
#define LS_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define LS_THREAD_ATTRIBUTE(x)
#endif

/// Marks a class as a lock. `name` appears in messages.
#define LS_CAPABILITY(name) LS_THREAD_ATTRIBUTE(capability(name))
/// Marks a class whose objects hold a lock from constructor to destructor.
#define LS_SCOPED_CAPABILITY LS_THREAD_ATTRIBUTE(scoped_lockable)
/// Marks a variable that may be used only under the lock.
#define LS_GUARDED_BY(lock) LS_THREAD_ATTRIBUTE(guarded_by(lock))
/// Marks a pointer: the object that it points to may be used only under the lock.
#define LS_PT_GUARDED_BY(lock) LS_THREAD_ATTRIBUTE(pt_guarded_by(lock))
/// Marks a function whose caller must hold the locks.
#define LS_REQUIRES(...) LS_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// Marks a function that takes the locks; without arguments, those of its object.
#define LS_ACQUIRE(...) LS_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
/// Marks a function that releases the locks; without arguments, those of its object.
#define LS_RELEASE(...) LS_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
/// The same for locks that several readers hold at once: the guarded variables may only be read.
#define LS_ACQUIRE_SHARED(...) LS_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define LS_RELEASE_SHARED(...) LS_THREAD_ATTRIBUTE(release_shared_capability(__VA_ARGS__))
/// Marks a function that takes the lock if it returns the first argument.
#define LS_TRY_ACQUIRE(...) LS_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
/// Marks a function after whose call the analysis assumes that the lock is held.
#define LS_ASSERT_HELD(...) LS_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
/// Marks a function whose caller must not hold the locks, because the function takes them.
#define LS_EXCLUDES(...) LS_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// Marks a function whose body is not checked. A comment beside each use says why.
#define LS_NO_THREAD_SAFETY_ANALYSIS LS_THREAD_ATTRIBUTE(no_thread_safety_analysis)
