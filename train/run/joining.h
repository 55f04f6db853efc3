#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/group/members.h"
#include "dist/rendezvous/door.h"
#include "train/run/elastic.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

/// How the line begins that a process says on standard error when it has joined a run.
inline constexpr const char* kJoined = "joined the run at ";

/// All set fields of a config, a line each, so that a difference between ranks is reported with its
/// path.
std::string lines_of(const config::RunConfig& config);

/// Opens the door of a run that trains, at which processes knock that want to join it. For the
/// leader.
std::unique_ptr<dist::Door> open_door(const config::RunConfig& config,
                                      const dist::Members::Start& start, Trainer& trainer,
                                      int most);

/// Joins a run that trains: waits at its leader's door until it is called, and connects to its
/// ranks. Then `elastic` has what follow_training begins with, and nothing is returned; otherwise
/// how the run has ended. A rank that the others have gone on without (ElasticRun::is_spare) has
/// its task in `elastic.carried`. `start.door` is the address where the ranks met at first. `tell`
/// gets lines for the user.
///
/// Looks for a leader as long as `limit`, at first and whenever one is lost. Throws TimeoutError if
/// there is none, MismatchError where version, config, model or data are not those of the run,
/// DistError for a wrong secret or where its ranks cannot be reached.
std::optional<dist::JoinEnd> join_run(const config::RunConfig& config,
                                      const dist::Members::Start& start,
                                      std::chrono::milliseconds limit,
                                      const std::function<void(const std::string&)>& tell,
                                      ElasticRun& elastic);

}  // namespace lockstep::train
