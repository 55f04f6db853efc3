#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace lockstep {

/// Base of objects that count their own references. Counting is thread-safe.
class RefCounted {
 public:
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  /// True when this was the last reference; the caller then destroys the object.
  bool release() const noexcept {
    // The only owner needs no read-modify-write: no other thread has a reference to copy.
    if (count_.load(std::memory_order_acquire) == 1) return true;
    return (count_.fetch_sub(1, std::memory_order_acq_rel) & ~kFindable) == 1;
  }
  uint32_t use_count() const noexcept {
    return count_.load(std::memory_order_relaxed) & ~kFindable;
  }

  /// Makes `retain_if_alive` work from now on. The caller has a reference.
  void make_findable() const noexcept { count_.fetch_or(kFindable, std::memory_order_relaxed); }
  /// Adds a reference through a plain pointer, beside the release of the last one on another
  /// thread. Returns false if that has happened. The object must be findable, and the caller must
  /// keep its memory valid: its destructor waits for the caller, say.
  bool retain_if_alive() const noexcept {
    uint32_t count = count_.load(std::memory_order_relaxed);
    do {
      if ((count & ~kFindable) == 0) return false;
    } while (!count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed));
    return true;
  }

 protected:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  ~RefCounted() = default;

 private:
  /// Set in the count of a findable object. Its count is then never 1, so that the last release
  /// decrements it to zero, where `retain_if_alive` sees it.
  static constexpr uint32_t kFindable = uint32_t{1} << 31;

  mutable std::atomic<uint32_t> count_{1};
};

/// Owning pointer to a RefCounted object. Copies share the object; a moved-from Ref is empty.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}
  /// Adopts the initial reference of a newly made object.
  static Ref adopt(T* fresh) noexcept {
    Ref ref;
    ref.pointer_ = fresh;
    return ref;
  }
  /// Adds a reference to a live object.
  static Ref share(T* alive) noexcept {
    if (alive != nullptr) alive->retain();
    return adopt(alive);
  }
  /// Adds a reference unless the last one was released; see RefCounted::retain_if_alive.
  static Ref share_if_alive(T* findable) noexcept {
    return findable->retain_if_alive() ? adopt(findable) : Ref();
  }
  Ref(const Ref& other) noexcept : pointer_(other.pointer_) {
    if (pointer_ != nullptr) pointer_->retain();
  }
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  template <class U>
  requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>) Ref(Ref<U> other)
  noexcept : pointer_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() noexcept {
    if (T* old = std::exchange(pointer_, nullptr); old != nullptr && old->release()) delete old;
  }
  /// Releases ownership without dropping the reference.
  T* detach() noexcept { return std::exchange(pointer_, nullptr); }

  T* get() const noexcept { return pointer_; }
  T& operator*() const noexcept { return *pointer_; }
  T* operator->() const noexcept { return pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.pointer_ == b.pointer_; }

 private:
  T* pointer_ = nullptr;
};

template <class T, class... A>
Ref<T> make_ref(A&&... args) {
  return Ref<T>::adopt(new T(std::forward<A>(args)...));
}

}  // namespace lockstep
