#pragma once

#include <string>
#include <string_view>

namespace lockstep::dist {

/// Returns 128 random bits of the system in hexadecimal, a secret shared by the ranks of one job.
/// Throws BackendError.
std::string random_secret();

/// Compares in a time that depends on the lengths only, so that timing does not reveal the secret.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace lockstep::dist
