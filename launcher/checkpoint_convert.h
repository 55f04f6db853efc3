#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds the subcommand `convert SOURCE DESTINATION --to hf|llmc` to `parent`: models from one
/// program's files to another's.
void add_checkpoint_convert(CLI::App& parent);

}  // namespace lockstep::launcher
