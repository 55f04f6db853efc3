#pragma once

// Names for clang's thread-safety attributes: which lock guards a member, and which locks a
// function expects, takes or releases. `./dev lint` compiles with clang's -Wthread-safety and so
// finds an access without its lock. Other compilers see nothing. The classes of core/base/mutex.h
// and SpinLock have the annotations of a lock; std::mutex has none.

#ifdef __clang__
#define LS_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define LS_THREAD_ATTRIBUTE(x)
#endif

/// Of a class: it is a lock. `name` appears in messages.
#define LS_CAPABILITY(name) LS_THREAD_ATTRIBUTE(capability(name))
/// Of a class: it holds a lock from its constructor to its destructor.
#define LS_SCOPED_CAPABILITY LS_THREAD_ATTRIBUTE(scoped_lockable)
/// Of a variable: may be used only under the lock.
#define LS_GUARDED_BY(lock) LS_THREAD_ATTRIBUTE(guarded_by(lock))
/// Of a pointer: what it points to may be used only under the lock.
#define LS_PT_GUARDED_BY(lock) LS_THREAD_ATTRIBUTE(pt_guarded_by(lock))
/// Of a function: the caller holds the locks.
#define LS_REQUIRES(...) LS_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// Of a function: it takes the locks; without arguments, those of its object.
#define LS_ACQUIRE(...) LS_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
/// Of a function: it releases the locks; without arguments, those of its object.
#define LS_RELEASE(...) LS_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
/// Of a function: it takes the lock if it returns the first argument.
#define LS_TRY_ACQUIRE(...) LS_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
/// Of a function: the caller holds the lock, which the analysis cannot see there.
#define LS_ASSERT_HELD(...) LS_THREAD_ATTRIBUTE(assert_capability(__VA_ARGS__))
/// Of a function: the caller must not hold the locks, because it takes them itself.
#define LS_EXCLUDES(...) LS_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// Of a function: its body is not checked. A comment says why.
#define LS_NO_THREAD_SAFETY_ANALYSIS LS_THREAD_ATTRIBUTE(no_thread_safety_analysis)
