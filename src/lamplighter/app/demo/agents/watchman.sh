# Calls the hours.
while :; do date '+%H:%M:%S and all is well'; sleep 15; done
