#pragma once

#include "core/base/error.h"

namespace lockstep::train {

/// A file or folder could not be read: nothing is known about its contents, so it is not damaged.
class UnreadableError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// A manifest of a later format than this program knows.
class NewerVersionError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// A checkpoint without a manifest.
class UnfinishedError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

/// Runs `read`, and rethrows its DataError, which says that the system refused, as UnreadableError.
template <class Read>
auto reading(Read&& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw UnreadableError(error.what());
  }
}

}  // namespace lockstep::train
