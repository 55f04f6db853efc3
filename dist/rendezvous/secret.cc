#include "dist/rendezvous/secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::dist {

std::string random_secret() {
  std::array<unsigned char, 16> bytes{};
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  LS_CHECK(got == static_cast<ssize_t>(bytes.size()), BackendError,
           "[store] the system gives no random bytes: {}.", std::strerror(errno));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

bool same_secret(std::string_view given, std::string_view secret) {
  if (given.size() != secret.size()) return false;
  volatile unsigned char different = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    different = static_cast<unsigned char>(different | (given[i] ^ secret[i]));
  }
  return different == 0;
}

}  // namespace lockstep::dist
