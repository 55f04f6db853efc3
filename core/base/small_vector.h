#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace lockstep {

/// A vector whose first `N` elements live inside the object, so that the short lists of the
/// dispatcher and of autograd cost no heap call. Not thread-safe, like std::vector.
template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() noexcept {}
  explicit SmallVector(size_t count, const T& value = T()) {
    reserve(count);
    std::uninitialized_fill_n(data(), count, value);
    size_ = static_cast<uint32_t>(count);
  }
  SmallVector(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  explicit SmallVector(std::span<const T> values) { append(values.begin(), values.end()); }
  SmallVector(const SmallVector& other) { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  T* data() noexcept { return on_heap() ? heap_ : inline_data(); }
  const T* data() const noexcept { return on_heap() ? heap_ : inline_data(); }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](size_t i) noexcept { return data()[i]; }
  const T& operator[](size_t i) const noexcept { return data()[i]; }
  T& front() noexcept { return data()[0]; }
  T& back() noexcept { return data()[size_ - 1]; }
  const T& front() const noexcept { return data()[0]; }
  const T& back() const noexcept { return data()[size_ - 1]; }
  operator std::span<const T>() const noexcept { return {data(), size_}; }

  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... A>
  T& emplace_back(A&&... args) {
    if (size_ == capacity_) {
      T value(std::forward<A>(args)...);  // grow() frees memory that arguments may refer to
      grow(size_ + 1);
      return emplace_back(std::move(value));
    }
    T* place = data() + size_;
    ::new (static_cast<void*>(place)) T(std::forward<A>(args)...);
    ++size_;
    return *place;
  }
  void pop_back() { data()[--size_].~T(); }
  void insert(size_t at, T value) {
    emplace_back(std::move(value));
    for (size_t i = size_ - 1; i > at; --i) std::swap(data()[i], data()[i - 1]);
  }
  void erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) data()[i] = std::move(data()[i + 1]);
    pop_back();
  }
  void resize(size_t count, T value = T()) {
    if (count > capacity_) grow(count);
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back(value);
  }
  void reserve(size_t count) {
    if (count > capacity_) grow(count);
  }
  void clear() noexcept {
    std::destroy_n(data(), size_);
    size_ = 0;
  }
  template <class It>
  void append(It first, It last) {
    const size_t count = static_cast<size_t>(last - first);
    reserve(size_ + count);
    T* place = data() + size_;
    if constexpr (std::is_trivially_copyable_v<T>) {
      for (; first != last; ++first, ++place) {
        ::new (static_cast<void*>(place)) T(*first);
        one_by_one();
      }
      size_ += static_cast<uint32_t>(count);
    } else {
      for (; first != last; ++first, ++place, ++size_) ::new (static_cast<void*>(place)) T(*first);
    }
  }
  void assign(std::span<const T> values) {
    clear();
    append(values.begin(), values.end());
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i) {
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  /// Compiler barrier that keeps a loop over elements from becoming one wide copy. A wide load of
  /// words that were just stored one by one cannot be forwarded and stalls until the store buffer
  /// drains, and most short lists are read right after they are written.
  static void one_by_one() noexcept { asm volatile(""); }

  bool on_heap() const noexcept { return capacity_ > N; }
  T* inline_data() noexcept { return std::launder(reinterpret_cast<T*>(inline_)); }
  const T* inline_data() const noexcept {
    return std::launder(reinterpret_cast<const T*>(inline_));
  }

  void grow(size_t needed) {
    const size_t capacity = needed > 2 * size_t{capacity_} ? needed : 2 * size_t{capacity_};
    T* fresh = std::allocator<T>().allocate(capacity);
    std::uninitialized_move_n(data(), size_, fresh);
    const uint32_t size = size_;
    release();
    heap_ = fresh;
    size_ = size;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  /// Destroys the elements, frees the heap memory and leaves an empty inline vector.
  void release() noexcept {
    clear();
    if (on_heap()) std::allocator<T>().deallocate(heap_, capacity_);
    capacity_ = N;
  }
  void take(SmallVector& other) noexcept {
    if (other.on_heap()) {
      heap_ = other.heap_;
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    } else {
      T* to = inline_data();
      for (T& value : other) {
        ::new (static_cast<void*>(to++)) T(std::move(value));
        one_by_one();
      }
      size_ = other.size_;
      other.clear();
    }
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  union {
    T* heap_;
    alignas(T) std::byte inline_[N * sizeof(T)];
  };
};

}  // namespace lockstep
