// The program `braid`.
#include <c10/util/Exception.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "app/failure.h"
#include "app/flags.h"
#include "app/generate.h"
#include "app/info.h"
#include "app/standard_output.h"
#include "app/verify.h"

namespace braid {
namespace {

int show(const ShowText& text) {
  if (text.was_asked_for) {
    print(text.text);
    return kSuccess;
  }
  std::cerr << text.text;
  return kBadInput;
}

// `is_verbose` is set as soon as it is known: complaints about the rest depend on it.
int run(int argc, char** argv, bool& is_verbose) {
  const auto began = PhaseLog::Clock::now();
  const auto line = parse_command_line(argc, argv);
  if (const auto* const text = std::get_if<ShowText>(&line)) return show(*text);
  if (const auto* const flags = std::get_if<InfoFlags>(&line)) return info(*flags);
  if (const auto* const flags = std::get_if<VerifyFlags>(&line)) return verify_layout(*flags);
  const auto& flags = std::get<GenerateFlags>(line);
  is_verbose = flags.verbosity == Verbosity::kVerbose;
  return generate(flags, began);
}

int run_or_complain(int argc, char** argv) {
  bool is_verbose = false;
  try {
    return run(argc, argv, is_verbose);
  } catch (...) {
    const auto failure = current_failure();
    std::cerr << "braid: " << failure.sentence << '\n';
    if (is_verbose && !failure.details.empty()) std::cerr << failure.details << '\n';
    return failure.exit_code;
  }
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  braid::protect_standard_files();
  const int exit_code = braid::run_or_complain(argc, argv);
  // Not exit(): it would run LibTorch's static destructors, 0.15 s for what the end of the process
  // frees by itself. Nothing is buffered: print() and std::cerr write at once.
  std::_Exit(exit_code);
}
