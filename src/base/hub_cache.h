// Hugging Face's cache of downloaded repositories:
// HUB/models--ORG--NAME/{refs/REVISION, snapshots/COMMIT/files}.
// Only files that are there are looked up; net/hub downloads them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace braid {

// The folder that huggingface_hub uses: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub,
// XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub, the first that is set.
std::filesystem::path hub_cache();

// The folder around it, where huggingface_hub keeps its token: HF_HOME,
// XDG_CACHE_HOME/huggingface or ~/.cache/huggingface.
std::filesystem::path hub_home();

// A path of huggingface_hub's variables, expanded as the library does: "~" at its beginning is the
// home_folder(), "$NAME" and "${NAME}" are variables of the environment; unknown ones stay.
std::filesystem::path expanded_path(const std::string& path);

// A name in the cache: "org/name", "org/name@revision", "org/name/file.gguf".
struct HubName {
  std::string repository;        // "org/name"
  std::string revision = {};     // a branch, a tag or (the beginning of) a commit; empty: main
  std::filesystem::path inside;  // a path in the repository; may be empty
};

// Empty if `name` cannot be one.
std::optional<HubName> hub_name(const std::string& name);

// What an address of Hugging Face's site shows: "https://huggingface.co/org/name",
// "hf.co/org/name/blob/main/a.gguf". Empty for others, and for data sets and spaces.
std::optional<HubName> hub_name_of_address(const std::string& address);

// The path that a name stands for in the cache; empty if the cache lacks the repository. Throws
// InputError if it has the repository, but not the revision or the file.
std::filesystem::path find_in_hub(const HubName& name, const std::filesystem::path& cache);

// The same in hub_cache(); empty also for what is no such name.
std::filesystem::path found_in_hub(const std::filesystem::path& name);

// What a complaint about a name that is nowhere goes on with: ", and none of that name in Hugging
// Face's cache, ..."; empty for what is neither such a name nor an address of the web. Throws
// InputError for the address of a model of which the cache lacks the revision or the file.
std::string not_in_hub(const std::filesystem::path& name);

// A snapshot of a cache under the name that finds it.
struct CachedRevision {
  std::string name;  // "org/name" for main or the only one; else "org/name@revision"
  std::filesystem::path snapshot;
  // A sentence, where a repository's snapshots cannot be listed: `snapshot` is their folder then.
  std::string unlisted = {};
};
std::vector<CachedRevision> revisions_in_hub(const std::filesystem::path& cache);  // by name

// A sentence saying why the folder cannot be listed; empty if it can be, or is not there.
std::string why_unlisted(const std::filesystem::path& folder);

// "models--org--name" for "org/name", and back: empty for other folders.
std::string folder_of_repository(std::string repository);
std::string repository_of_folder(const std::string& folder);

// The folder of the snapshot, if `path` is a repository's folder in a cache ("models--org--name")
// or the folder "snapshots" in it; otherwise `path`. Throws InputError if there is none.
std::filesystem::path snapshot_of(const std::filesystem::path& path);

// The name of the model or file at `path`: its last component. A snapshot and a repository's folder
// have the name of the model ("FLUX.1-dev"), not that of a commit.
std::string model_name(const std::filesystem::path& path);

// The repository ("org/name") that `path` lies in, if it lies in a cache; else empty.
std::string hub_repository(const std::filesystem::path& path);

}  // namespace braid
