#include "app/flags/flag_groups.h"

namespace braid {

const char* const kPullExamples =
    R"(Loads the files that Braid reads into Hugging Face's cache, where its own library finds them,
too; then `braid generate -m org/name` does. What was loaded before is kept: the same command
goes on after an interruption. HF_TOKEN, HF_ENDPOINT, HF_HOME, HF_HUB_CACHE and HF_HUB_OFFLINE
mean what they do there.

Examples:
  braid pull black-forest-labs/FLUX.1-schnell
  braid pull org/name@v1.1
  braid pull city96/FLUX.1-dev-gguf/flux1-dev-Q4_K_S.gguf)";

void add_pull_flags(FlagReader& read, PullFlags& f) {
  read.positional("NAME",
                  "org/name of a repository, with @ and a branch, tag or commit if\n"
                  "not main; org/name/file for one file or folder of it",
                  f.name);
  read.text("--max-workers", "N", "Network", "Files that are loaded at once, 1 to 32. Default: 4",
            into(f.workers, whole_from(1, 32)));
  read.flag("--dry-run", "Network", "Only list the files, with what is missing", f.dry_run);
  read.flag("--verify", "Network", "Also check the hashes of files that were here before",
            f.verify);
  read.flag("--json", "Output", "Print one JSON object instead of the path", f.json);
  read.flag("-q,--quiet", "Output", "Print no progress", f.quiet);
}

void add_models_flags(FlagReader& read, ModelsFlags& f) {
  read.texts("--comfy", "DIR", "Files", "Also a models folder of ComfyUI; may be repeated",
             [&](const std::string& flag, const std::string& text) {
               require(!text.empty(), flag, " should be a path, it is empty");
               f.comfy.emplace_back(text);
             });
  read.flag("--json", "Output", "Print one JSON object", f.json);
}

void check_together(const PullFlags& f) {
  require(!f.name.empty(),
          "there is no name: say what to load, as in braid pull black-forest-labs/FLUX.1-schnell");
}

}  // namespace braid
