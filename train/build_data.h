#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/token_source.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::config {
class DataConfig;
class TokenizerConfig;
}  // namespace lockstep::config

namespace lockstep::train {

class Documents;

/// What the model and the training loop require of the data.
struct DataRequest {
  int64_t vocabulary = 0;  ///< token ids that the model accepts
  uint64_t seed = 0;
  int64_t sequences_per_step = 1;  ///< over all ranks
  int64_t length = 0;              ///< tokens of a sequence
};

/// Builds the source that a resolved `data` message describes. Throws DataError if the data is
/// missing or malformed, ConfigError if the tokenizer's vocabulary is larger than the model's.
std::unique_ptr<TokenSource> build_data(const config::DataConfig& data, const DataRequest& request);

/// Throws ConfigError if the tokenizer has more tokens than the model accepts.
void check_vocabulary(const Tokenizer& tokenizer, const DataRequest& request);

/// Builds the tokenizer of a resolved message. BPE and SentencePiece without files are trained on
/// `documents`, or loaded from the cache in `cache_folder`; other tokenizers use neither.
std::shared_ptr<const Tokenizer> build_tokenizer(const config::TokenizerConfig& config,
                                                 const Documents& documents,
                                                 const std::string& cache_folder);

}  // namespace lockstep::train
