#pragma once

#include <memory>

#include "data/token_source.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::config {
class DataConfig;
class TokenizerConfig;
}  // namespace lockstep::config

namespace lockstep::train {

class Documents;

/// What a run's other parts ask of its data.
struct DataRequest {
  int64_t vocabulary = 0;  ///< of the model
  uint64_t seed = 0;
  int64_t sequences_per_step = 1;  ///< over all ranks
};

/// The source that a resolved `data` message describes. Throws DataError for data that is missing
/// or malformed, ConfigError if the tokenizer's vocabulary is larger than the model's.
std::unique_ptr<TokenSource> build_data(const config::DataConfig& data, const DataRequest& request);

/// The tokenizer of a resolved message. SentencePiece without a model file is trained on
/// `documents`, or taken from the cache in `cache_folder`; neither is looked at otherwise.
std::shared_ptr<const Tokenizer> build_tokenizer(const config::TokenizerConfig& config,
                                                 const Documents& documents,
                                                 const std::string& cache_folder);

}  // namespace lockstep::train
