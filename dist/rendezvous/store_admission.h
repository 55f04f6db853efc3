#pragma once

#include <optional>
#include <string>

#include "dist/rendezvous/store_message.h"
#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/store_table.h"

namespace lockstep::dist {

/// Reason for refusing a connection; `text` is a clause such as "it is of job ...".
struct Refusal {
  StoreStatus status = StoreStatus::kDistError;
  std::string text;
};

/// Checks the first message of a connection. Returns why its sender is not admitted as a rank, or
/// nullopt. Without the secret, a sender learns no more than the job's name.
std::optional<Refusal> check_admission(const StoreMessage& hello, const StoreServerOptions& options,
                                       const StoreTable& table);

/// Whether it is of a process that wants to join a job that trains (dist/rendezvous/newcomer.h).
bool is_from_newcomer(const StoreMessage& hello);

}  // namespace lockstep::dist
