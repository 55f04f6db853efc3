#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds the subcommand `convert SOURCE DESTINATION --to hf|llmc` to `parent`: converts models
/// between the file formats of Hugging Face and llm.c.
void add_checkpoint_convert(const Verb& parent);

}  // namespace lockstep::launcher
