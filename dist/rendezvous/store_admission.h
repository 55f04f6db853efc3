#pragma once

#include <optional>
#include <string>

#include "dist/rendezvous/store_message.h"
#include "dist/rendezvous/store_server.h"
#include "dist/rendezvous/store_table.h"

namespace lockstep::dist {

/// Why somebody is not let in, as "it is of job ...".
struct Refusal {
  StoreStatus status = StoreStatus::kDistError;
  std::string text;
};

/// What keeps who sent this first message from being a rank of the job; none for a rank of it.
/// Names nothing of the job to who does not know its secret but its name.
std::optional<Refusal> objection_to(const StoreMessage& hello, const StoreServerOptions& options,
                                    const StoreTable& table);

}  // namespace lockstep::dist
