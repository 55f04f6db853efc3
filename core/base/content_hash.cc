#include "core/base/content_hash.h"

#include <xxhash.h>

#include <new>

#include "core/base/check.h"

namespace lockstep {

// Owns the state by pointer, because it must be aligned to 64 bytes and the library allocates it
// so.
struct ContentHasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

std::string ContentHash::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {}
ContentHasher::~ContentHasher() = default;

ContentHasher& ContentHasher::add(std::span<const std::byte> bytes) {
  return add(uint64_t{bytes.size()}).append(bytes);
}

ContentHasher& ContentHasher::append(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

ContentHasher& ContentHasher::add(uint64_t number) {
  XXH3_128bits_update(state_->xxh, &number, sizeof number);
  return *this;
}

ContentHash ContentHasher::result() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {hash.low64, hash.high64};
}

}  // namespace lockstep
