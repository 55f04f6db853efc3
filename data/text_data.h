#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "data/token_source.h"
#include "data/tokenizers/byte_tokenizer.h"

namespace lockstep::train {

/// A file whose bytes are the tokens, so that any file can be used and the loss converts to bits
/// per byte. The last `held_out_bytes` are kept for validation and never trained on.
class ByteText : public TokenSource {
 public:
  /// Reads the whole file. Throws DataError naming the path if it is missing, unreadable, a folder,
  /// empty, or not longer than `held_out_bytes` (which may be 0, but not negative).
  /// `seed` determines every training sequence.
  ByteText(const std::filesystem::path& path, int64_t held_out_bytes, uint64_t seed);

  int64_t vocabulary() const override { return 256; }
  /// A window of length + 1 bytes at an offset drawn uniformly from the training part.
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  std::vector<SampleOrigin> origins_at(std::span<const Place> places,
                                       int64_t length) const override;
  int64_t validation_windows(int64_t length) const override;
  /// The first input of a window is the byte before its first target, so that even the first
  /// held-out byte is predicted, from the last training byte.
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;
  ContentHash fingerprint() const override;
  ContentHash identity() const override;
  const Tokenizer* tokenizer() const override { return &tokenizer_; }
  double held_out_bytes_per_token() const override { return 1; }

  /// The training part and the held-out part, in the order of the file.
  std::span<const std::byte> training() const { return bytes().first(training_bytes_); }
  std::span<const std::byte> held_out() const { return bytes().subspan(training_bytes_); }

 private:
  uint64_t offset_of(int64_t step, int64_t index, size_t length) const;
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text_)); }

  std::filesystem::path path_;
  std::string text_;
  size_t training_bytes_;
  uint64_t seed_;
  ByteTokenizer tokenizer_;
};

/// An endless source of uniformly random tokens, for benchmarks: targets[t] is inputs[t + 1]. Holds
/// nothing out.
class RandomTokens : public TokenSource {
 public:
  /// `vocabulary` must lie in [1, 2^32]; anything else throws DataError.
  RandomTokens(int64_t vocabulary, uint64_t seed);

  int64_t vocabulary() const override { return vocabulary_; }
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override;
  ContentHash fingerprint() const override;
  int64_t validation_windows(int64_t) const override { return 0; }
  int64_t validation_window(int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const override;

 private:
  int64_t vocabulary_;
  uint64_t seed_;
};

}  // namespace lockstep::train
