#pragma once

#include <memory>

#include "train/build_data.h"

namespace lockstep::config {
class MixtureExamples;
}  // namespace lockstep::config

namespace lockstep::train {

/// Builds the source of a resolved `data` message that has examples. Errors are those of
/// build_data.
std::unique_ptr<TokenSource> build_examples(const config::DataConfig& data,
                                            const DataRequest& request);

/// Builds a source of a mixture of `data` that has examples; `request` is for this source alone,
/// and the tokenizer is the mixture's. Throws DataError if the examples are missing or malformed.
std::unique_ptr<TokenSource> build_mixed_examples(const config::DataConfig& data,
                                                  const config::MixtureExamples& from,
                                                  const DataRequest& request,
                                                  std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace lockstep::train
