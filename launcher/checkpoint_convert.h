#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds the subcommand `convert SOURCE DESTINATION --to hf|llmc` to `parent`: models from one
/// program's files to another's.
void add_checkpoint_convert(const Verb& parent);

}  // namespace lockstep::launcher
