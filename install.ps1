# Installs a release of flux, flux-helper and flux-ui on Windows after verifying the checksum of the archive.
#
#   FLUX_VERSION   version, e.g. 1.0.0 (default: the latest)
#   FLUX_DIR       directory (default: %LOCALAPPDATA%\flux)
#   FLUX_RELEASES  URL of the releases, for a mirror
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

$releases = if ($env:FLUX_RELEASES) { $env:FLUX_RELEASES } else { 'https://github.com/fluxkit/flux/releases' }
$directory = if ($env:FLUX_DIR) { $env:FLUX_DIR } else { Join-Path $env:LOCALAPPDATA 'flux' }
$version = $env:FLUX_VERSION
if (-not $version) {
    # The latest release redirects to its tag.
    $request = [System.Net.WebRequest]::Create("$releases/latest")
    $response = $request.GetResponse()
    $version = $response.ResponseUri.Segments[-1]
    $response.Close()
}
$version = $version -replace '^v', ''
if ($version -notmatch '^[0-9][0-9A-Za-z.+-]*$') {
    throw "invalid version '$version': set FLUX_VERSION to a release, e.g. 1.0.0"
}
$arch = if ($env:PROCESSOR_ARCHITECTURE -eq 'ARM64') { 'arm64' } else { 'amd64' }
$archive = "flux_${version}_windows_${arch}.zip"
$checksums = "flux_${version}_checksums.txt"

$work = Join-Path ([System.IO.Path]::GetTempPath()) ([System.IO.Path]::GetRandomFileName())
New-Item -ItemType Directory -Path $work | Out-Null
try {
    foreach ($file in $archive, $checksums) {
        Invoke-WebRequest -UseBasicParsing -TimeoutSec 600 -Uri "$releases/download/v$version/$file" -OutFile (Join-Path $work $file)
    }
    $expected = Get-Content (Join-Path $work $checksums) | ForEach-Object { , ($_ -split '\s+') } |
        Where-Object { $_[1] -eq $archive } | ForEach-Object { $_[0] }
    $actual = (Get-FileHash -Algorithm SHA256 (Join-Path $work $archive)).Hash.ToLowerInvariant()
    if (-not $expected -or $actual -ne $expected) {
        throw "the checksum of $archive is $actual, not $expected"
    }
    $new = Join-Path $work 'new'
    Expand-Archive -Path (Join-Path $work $archive) -DestinationPath $new
    New-Item -ItemType Directory -Force -Path $directory | Out-Null
    foreach ($program in 'flux-helper.exe', 'flux-ui.exe', 'flux.exe') {
        if ($program -eq 'flux-ui.exe' -and -not (Test-Path (Join-Path $new $program))) { continue } # earlier releases do not contain it
        Move-Item -Force -Path (Join-Path $new $program) -Destination (Join-Path $directory $program)
    }
}
finally {
    Remove-Item -Recurse -Force $work
}
Write-Output "installed flux $version in $directory"
if (($env:PATH -split ';') -notcontains $directory) {
    Write-Output "add it to your PATH: `$env:PATH = `"$directory;`$env:PATH`""
}
