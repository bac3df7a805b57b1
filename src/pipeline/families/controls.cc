#include "pipeline/families/controls.h"

#include "base/error.h"
#include "pipeline/files/model_files.h"

namespace braid {

void check_widths(const std::string& folder, std::initializer_list<NetWidth> widths) {
  for (const auto& width : widths)
    require(width.has == width.wants, "the ControlNet ", folder, " has ", width.of, " of width ",
            width.has, ", the transformer's are of ", width.wants);
}

Part control_part(std::size_t number, std::size_t count) {
  return {.role = Part::Role::kControl,
          .folder = controlnet_part(number),
          .label = count == 1 ? "ControlNet" : text_of("ControlNet ", number + 1)};
}

}  // namespace braid
