#pragma once

#include <string>
#include <string_view>

namespace lockstep::dist {

/// 128 random bits of the system, in hexadecimal: what only the ranks of one job know. Throws
/// BackendError.
std::string random_secret();

/// Whether they are equal, in a time that depends on their lengths alone.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace lockstep::dist
