#pragma once

#include <string>

namespace lockstep::nn {

class Module;

/// The class of a module as the program writes it, without namespaces: "Linear".
std::string class_name(const Module& module);

}  // namespace lockstep::nn
