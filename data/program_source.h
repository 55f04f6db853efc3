#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "data/program/child_program.h"
#include "data/token_source.h"

namespace lockstep::train {

struct ProgramSourceOptions {
  std::string command = {};                                       ///< run by sh -c
  std::chrono::milliseconds timeout = std::chrono::seconds(300);  ///< for one answer
  // What the program is told before it is asked for sequences.
  int64_t vocabulary = 0;
  uint64_t seed = 0;
  int64_t sequences_per_step = 1;
  int64_t length = 0;                                    ///< usual number of tokens of a sequence
  std::shared_ptr<const Tokenizer> tokenizer = nullptr;  ///< that decodes the tokens; may be null
};

/// Sequences that another program makes, in whatever language it is written: requests are lines of
/// JSON, answers a line of JSON with 32-bit numbers behind it (docs/python.md). The program must
/// give the same sequence whenever it is asked for the same. Requests wait for each other.
class ProgramSource : public TokenSource {
 public:
  /// Starts the program and tells it what is wanted. Throws DataError if that fails.
  explicit ProgramSource(ProgramSourceOptions options);

  int64_t vocabulary() const override { return options_.vocabulary; }
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  int64_t validation_windows(int64_t length) const override;
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;
  /// Hash of what the program calls its data.
  ContentHash fingerprint() const override { return fingerprint_; }
  const Tokenizer* tokenizer() const override { return options_.tokenizer.get(); }

 private:
  /// Fills a row with the answer to `request`.
  void fill(const std::string& request, std::span<int64_t> inputs,
            std::span<int64_t> targets) const;

  ProgramSourceOptions options_;
  mutable Mutex mutex_;
  mutable ChildProgram program_ LS_GUARDED_BY(mutex_);
  mutable std::map<int64_t, int64_t> windows_ LS_GUARDED_BY(mutex_);  ///< by length
  ContentHash fingerprint_;
};

}  // namespace lockstep::train
