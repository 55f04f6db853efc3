#pragma once

#include "dist/flight/flight_recorder.h"
#include "profile/profile.h"

namespace lockstep::launcher {

/// Adds the collectives and messages of a rank to its profile, from the always-on flight recorder:
/// operation, bytes, group and sequence number in it. They are spans of threads of their own, as
/// many as there were operations at once, because they overlap each other. Those that the recorder
/// has overwritten are counted as lost.
void add_collectives(profile::Profile& profile, const dist::FlightRecorder& recorder);

}  // namespace lockstep::launcher
