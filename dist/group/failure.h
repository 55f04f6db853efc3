#pragma once

#include <exception>
#include <string>

#include "core/base/error.h"
#include "dist/rendezvous/job_control.h"

namespace lockstep::dist {

/// A rank was asked to stop when there was nothing to save, which ends the job without a fault.
class StoppedError : public DistError {
 public:
  using DistError::DistError;
  const char* kind() const noexcept override { return "StoppedError"; }
};
/// Whether `error` is a StoppedError; `error` must not be null.
bool is_stop(const std::exception_ptr& error);

/// A MismatchError that all ranks throw, since each has compared what all told it: one of them may
/// report it for all.
class CommonMismatchError : public MismatchError {
 public:
  CommonMismatchError(const std::string& message, int rank, int size)
      : MismatchError(message), rank_(rank), size_(size) {}
  int rank() const { return rank_; }  ///< this rank
  int size() const { return size_; }  ///< number of ranks that throw it

 private:
  int rank_;
  int size_;
};

/// Returns the message of an error; `error` must not be null.
std::string words_of(const std::exception_ptr& error);

/// Encodes `error` for JobControl::fail so that `exception_of` restores its type.
std::string failure_text(const DistError& error);

/// Returns the exception for a job's failure on rank `self`: an error encoded by `failure_text`
/// with its type, anything else as PeerLostError with the failed rank's message.
std::exception_ptr exception_of(const Failure& failure, int self);

}  // namespace lockstep::dist
