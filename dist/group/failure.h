#pragma once

#include <exception>
#include <string>

#include "core/base/error.h"
#include "dist/rendezvous/job_control.h"

namespace lockstep::dist {

/// What an error says; `error` is not null.
std::string words_of(const std::exception_ptr& error);

/// `error` as JobControl::fail takes it, so that `exception_of` makes the same kind of it.
std::string failure_text(const DistError& error);

/// What a job's failure is to the rank `self`: for errors of communication the same error, and for
/// anything else PeerLostError with the other rank's words.
std::exception_ptr exception_of(const Failure& failure, int self);

}  // namespace lockstep::dist
