// An adapter's file: its modules, for any model.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/adapter.h"
#include "weights/adapters/adapter_keys.h"
#include "weights/adapters/adapter_metadata.h"
#include "weights/files/checkpoint.h"

namespace braid {

struct AdapterModule {
  std::string name;  // in the file's spelling
  std::map<AdapterRole, StoredTensor> tensors;

  const StoredTensor* find(AdapterRole role) const;  // nullptr when absent
};

class AdapterFile {
 public:
  // Throws InputError if this is not a safetensors file or not an adapter, naming its kind if none
  // of it can be applied, or if a module has two tensors of one role.
  explicit AdapterFile(const std::filesystem::path& path);

  const std::string& source() const { return source_; }
  // Keyed by underscored name.
  const std::map<std::string, AdapterModule>& modules() const { return modules_; }
  const AdapterModule* find(const std::string& module) const;  // nullptr when absent
  const AdapterMetadata& metadata() const { return metadata_; }
  // A sentence on an alpha that is missing, or that lies beside the file and is not its own; empty
  // if there is none.
  const std::string& note() const { return note_; }

 private:
  void check_applicable(const Checkpoint& file) const;
  void take_config_beside(const std::filesystem::path& path);

  std::string source_;
  std::map<std::string, AdapterModule> modules_;
  AdapterMetadata metadata_;
  std::string note_;
};

// adapter_in()'s file, and the other one that AdapterFile may read: peft's config beside it.
std::vector<std::filesystem::path> files_of_adapter(const std::filesystem::path& path);

// Whether a file has a tensor named like part of an adapter.
bool is_adapter(const Checkpoint& file);

// An adapter to apply, with its scale.
struct AppliedAdapter {
  std::shared_ptr<const AdapterFile> file;
  double scale;

  bool operator==(const AppliedAdapter&) const = default;
};

void check_scale(const Adapter& adapter);  // throws InputError unless it is finite

// Throws InputError.
std::vector<AppliedAdapter> open_adapters(const std::vector<Adapter>& adapters);

}  // namespace braid
