// SPDX-License-Identifier: Apache-2.0
#include "daemon/tls_files.h"

#include "base/text.h"
#include "os/user.h"

namespace gflow::daemon {

std::vector<std::string> host_names(const settings::Settings& settings) {
  const std::string host = to_lower(os::host_name());
  std::vector<std::string> names = settings.host_names;
  names.push_back(host);
  names.push_back(host.substr(0, host.find('.')));
  return names;
}

Result<server::TlsFiles> tls_files(const settings::Settings& settings, const os::Paths& paths) {
  server::TlsFiles files{settings.tls_certificate, settings.tls_key, settings.client_ca};
  if (files.certificate.empty() && files.key.empty()) {
    files.certificate = paths.state_dir + "/tls.crt";
    files.key = paths.state_dir + "/tls.key";
    GF_CHECK(server::make_own_certificate(files, host_names(settings)));
  }
  GF_CHECK(server::check_tls_files(files));
  return files;
}

}  // namespace gflow::daemon
