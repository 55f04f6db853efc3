#pragma once

#include <map>
#include <string>

#include "tests/forms/declared.h"

namespace lockstep::forms {

/// Texts by their paths from the repository's root.
using Files = std::map<std::string, std::string>;

/// The functions and methods of every operator that core/ops declares, except those that
/// `functions` and `methods` have by hand already: the files of core/ops/forms and
/// core/tensor/methods. Operators of one folder of core/ops share files.
///
/// A functional operator `name` becomes the function `name`, and a method where its first argument
/// is `Tensor self`; an in-place one `name_` alike; an out= one the function `name_out`, whose
/// destinations come first. Left out are names that begin with an underscore or have a namespace,
/// and operators with a `Layout?` argument, whose functions take TensorOptions.
Files written_forms(Overloads functions, Overloads methods);

/// The same, beside what the headers under `root` declare by hand.
Files written_forms(const std::string& root);

}  // namespace lockstep::forms
