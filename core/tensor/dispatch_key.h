#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/scoped_value.h"
#include "core/tensor/device.h"

namespace lockstep {

/// Handlers of a call, innermost first: the highest bit in a call's key set is handled first.
/// docs/dispatch.md explains the order.
enum class Key : uint8_t {
  kCPU,       ///< kernels on the calling thread
  kHost,      ///< CPU kernels on FIFO streams
  kCUDA,      ///< NVIDIA GPUs
  kMeta,      ///< shapes only
  kPrivate1,  ///< free slots for backends from shared libraries
  kPrivate2,
  kPrivate3,
  kPrivate4,
  kDispatchMode,   ///< mode objects that see what reaches backends
  kAutograd,       ///< records the tape; set while a tensor requires grad
  kAutocast,       ///< casts arguments, recorded by the tape below it
  kVmap,           ///< batched tensors
  kFunctionalize,  ///< reserved for graph capture
  kFunctionMode,   ///< mode objects that see calls as the user made them
  kObserver,       ///< callbacks at entry and exit of every call
};
inline constexpr int kKeyCount = 15;

/// "CPU", "Autograd", ...
std::string_view name(Key key);
constexpr Key backend_key(DeviceType type) { return static_cast<Key>(type); }

/// A set of keys in 64 bits.
class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(Key key) : bits_(uint64_t{1} << static_cast<int>(key)) {}
  static constexpr KeySet from_bits(uint64_t bits) {
    KeySet set;
    set.bits_ = bits;
    return set;
  }
  static constexpr KeySet all() { return from_bits((uint64_t{1} << kKeyCount) - 1); }
  static constexpr KeySet backends() { return from_bits(0xff); }
  /// Every key inside `key`, without it: what a handler of `key` passes on.
  static constexpr KeySet below(Key key) {
    return from_bits((uint64_t{1} << static_cast<int>(key)) - 1);
  }

  constexpr bool has(Key key) const { return (bits_ >> static_cast<int>(key)) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr uint64_t bits() const { return bits_; }
  /// The key that handles the call first. The set must not be empty.
  constexpr Key highest() const { return static_cast<Key>(63 - std::countl_zero(bits_)); }

  constexpr KeySet operator|(KeySet o) const { return from_bits(bits_ | o.bits_); }
  constexpr KeySet operator&(KeySet o) const { return from_bits(bits_ & o.bits_); }
  constexpr KeySet operator-(KeySet o) const { return from_bits(bits_ & ~o.bits_); }
  constexpr KeySet& operator|=(KeySet o) { return *this = *this | o; }
  friend constexpr bool operator==(KeySet, KeySet) = default;

 private:
  uint64_t bits_ = 0;
};

/// "{Autograd, CPU}", outermost first.
std::string to_string(KeySet keys);

namespace detail {
/// Keys that this thread adds to and removes from every call's key set.
struct ThreadKeys {
  KeySet included;
  KeySet excluded;
};
inline thread_local constinit ThreadKeys thread_keys{};
}  // namespace detail

/// While alive, adds `keys` to the key set of every call of this thread.
class IncludeKeys {
 public:
  explicit IncludeKeys(KeySet keys) noexcept
      : included_(detail::thread_keys.included, detail::thread_keys.included | keys) {}

 private:
  ScopedValue<KeySet> included_;
};

/// While alive, removes `keys` from the key set of every call of this thread. Exclusion wins over
/// inclusion.
class ExcludeKeys {
 public:
  explicit ExcludeKeys(KeySet keys) noexcept
      : excluded_(detail::thread_keys.excluded, detail::thread_keys.excluded | keys) {}

 private:
  ScopedValue<KeySet> excluded_;
};

}  // namespace lockstep
