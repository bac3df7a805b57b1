#include "app/files/input_bytes.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "comm/launch.h"

namespace braid {
namespace {

constexpr std::uint64_t kMostStreamed = 256u << 20;  // bytes, as of a file

bool is_pipe(const std::filesystem::path& path) {
  std::error_code missing;
  return std::filesystem::is_fifo(path, missing);
}

}  // namespace

void require_no_address(const std::string& flag, const std::filesystem::path& path) {
  const auto& text = path.native();
  require(text.find("://") == text.npos || is_there(path), flag, " should be a file, ", text,
          " is an address: download it first");
}

std::string read_input(const std::string& flag, const std::filesystem::path& path,
                       Terminal terminal) {
  require_no_address(flag, path);
  const bool is_standard = path == "-";
  if (!is_standard && !is_pipe(path)) return read_file(path);
  const auto launch = read_launch();
  require(!launch, flag, " ", path.string(), ": only one of the ranks that ",
          launch ? launch->launcher : "", " started can read it: give a file that all can read");
  if (!is_standard) return read_stream(path, path.string(), kMostStreamed);
  require(terminal == Terminal::kRead || !::isatty(STDIN_FILENO), flag,
          " - reads standard input, which is a terminal: send a ",
          "file or another program's output to it");
  return read_stream(STDIN_FILENO, "standard input", kMostStreamed);
}

void require_one_reader_of_standard_input(const GenerateFlags& flags) {
  std::string first;
  const auto count = [&](const char* flag, const std::filesystem::path& path) {
    if (path != "-") return;
    require(first.empty(), first, " and ", flag,
            " both read standard input, which can be read once: give a file for one of them");
    first = flag;
  };
  const auto& pictures = flags.pictures;
  count("--prompt-file", flags.prompt_file);
  count("--boxes", flags.boxes);
  count("--init", pictures.init);
  count("--mask", pictures.mask);
  for (const auto& path : pictures.references) count("--reference", path);
  for (const auto& path : pictures.controls) count("--control", path);
}

}  // namespace braid
