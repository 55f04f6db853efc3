#pragma once

#include <google/protobuf/io/tokenizer.h>

#include <string>

namespace lockstep::config {

/// Drops what protobuf's parsers report; without one they print to stderr.
class Silence : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

}  // namespace lockstep::config
