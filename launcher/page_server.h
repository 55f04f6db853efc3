#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/descriptor.h"

namespace lockstep::launcher {

/// Answers a browser on this machine with one page. Listens at 127.0.0.1 alone, reads nothing but
/// what the page's maker reads, and answers only to an address with a random token, so that other
/// users of the machine and pages of other sites cannot ask. Not thread-safe.
class PageServer {
 public:
  /// Listens; port 0 lets the system choose one. The browser asks again after `refresh` seconds; 0:
  /// only when its user does. Throws AddressInUse, BackendError.
  explicit PageServer(uint16_t port, int64_t refresh = 0);

  /// "http://127.0.0.1:PORT/TOKEN/"
  std::string address() const;
  /// Waits for a connection and answers its request, with what `page` returns where that is what it
  /// asks for; an exception that `page` throws is answered as its text. A client that sends no
  /// request within some seconds is left.
  void answer_one(const std::function<std::string()>& page);

 private:
  std::string answer_to(std::string_view request, const std::function<std::string()>& page) const;

  uint16_t port_;
  int64_t refresh_;
  std::string token_;
  Descriptor listener_;
};

}  // namespace lockstep::launcher
