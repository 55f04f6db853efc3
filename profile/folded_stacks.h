#pragma once

#include <string>

#include "profile/profile.h"

namespace lockstep::profile {

/// The profile as folded stacks, the input of flame graph programs (flamegraph.pl, speedscope):
/// a line "thread;outer;inner 1234" for each stack of spans, with the nanoseconds that were spent
/// in its innermost span without those inside. Steps are left out, so that equal stacks of all
/// steps add up.
std::string folded_stacks(const Profile& profile);

}  // namespace lockstep::profile
