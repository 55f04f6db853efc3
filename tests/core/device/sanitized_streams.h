#pragma once

#include "core/device/stream_sanitizer.h"

namespace lockstep {

/// Turns the stream sanitizer on, with an empty record, until the end of the scope.
class SanitizedStreams {
 public:
  SanitizedStreams() : was_on_(stream_sanitizer::enabled()) { stream_sanitizer::enable(true); }
  ~SanitizedStreams() { stream_sanitizer::enable(was_on_); }
  SanitizedStreams(const SanitizedStreams&) = delete;
  SanitizedStreams& operator=(const SanitizedStreams&) = delete;

 private:
  bool was_on_;
};

}  // namespace lockstep
