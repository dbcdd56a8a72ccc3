# Burns, and says so now and then.
echo "the lamp is lit"
while :; do sleep 20; echo "still burning"; done
